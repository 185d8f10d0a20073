#include "core/run/case_summary.h"

#include <algorithm>
#include <vector>

namespace assay::run {
namespace {

double rate(uint64_t tokens, double seconds) { return seconds > 0 ? static_cast<double>(tokens) / seconds : 0; }

// The first token of a request carries its prefill and is left out. 0: nothing timed.
double tpot_median(const std::vector<RequestRecord>& records) {
  std::vector<double> seconds;
  for (const RequestRecord& record : records) {
    if (record.tpot && record.tpot->size() > 1)
      seconds.insert(seconds.end(), record.tpot->begin() + 1, record.tpot->end());
  }
  if (seconds.empty()) return 0;
  const auto middle = seconds.begin() + static_cast<ptrdiff_t>(seconds.size() / 2);
  std::nth_element(seconds.begin(), middle, seconds.end());
  return *middle;
}

// Tokens behind each request's first one, which the prefill gives.
uint64_t decoded_tokens(const std::vector<RequestRecord>& records) {
  uint64_t count = 0;
  for (const RequestRecord& record : records)
    count += record.tokens && !record.tokens->empty() ? record.tokens->size() - 1 : 0;
  return count;
}

}  // namespace

void add_session(const SessionResult& session, CaseSummary* summary) {
  summary->batch = session.batch;
  summary->prompt_tokens = session.prompt_tokens;
  summary->generated_tokens = session.generated_tokens;
  summary->prefill_rate = rate(session.prefill_tokens, session.prefill_seconds);
  summary->decode_rate = rate(decoded_tokens(session.records), session.decode_seconds);
  summary->tpot_median = tpot_median(session.records);
  summary->first_token_seconds = session.first_token_seconds;
}

void add_difference(const CaseVerdict& verdict, CaseSummary* summary) {
  for (const MetricVerdict& metric : verdict.metrics) {
    if (metric.metric != "logprobs") continue;
    summary->has_difference = true;
    for (const Finding& finding : metric.findings) {
      summary->max_abs_difference = std::max(summary->max_abs_difference, finding.max_abs_difference);
    }
  }
}

}  // namespace assay::run
