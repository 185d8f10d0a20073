#include "core/compare/reanchoring.h"

#include <algorithm>
#include <cmath>

#include "core/compare/routing_tie.h"

namespace assay::compare {
namespace {

TokenView view_of(int32_t id, const RerunPosition& position) {
  TokenView view;
  view.id = id;
  if (const TopEntry* entry = position.find(id)) {
    view.text = entry->text;
    view.logprob = entry->logprob;
  }
  return view;
}

// Position `index` where the rerun's choice (or, at the first divergent token, the judged run's) is not the golden's.
Split split_at(const ReanchorInput& input, size_t index, int32_t other) {
  const RerunPosition& position = input.again->positions[index];
  Split split;
  split.index = static_cast<int64_t>(index);
  split.golden = view_of(input.again->golden_tokens[index], position);
  if (!split.golden.logprob) split.golden.logprob = position.golden_logprob;
  split.result = view_of(other, position);
  split.golden_rank = position.golden_rank;
  if (split.golden.logprob && split.result.logprob) {
    const Gap gap = measure_gap(*input.rule, *split.golden.logprob, *split.result.logprob, position.golden_logit);
    split.gap = gap.nats;
    split.gap_ulps = gap.ulps;
    split.near_tie = gap.near_tie;
  }
  for (const TopEntry& entry : position.top) {
    if (split.top.size() == kMaxSplitCandidates) break;
    SplitCandidate candidate;
    candidate.token = {entry.id, entry.text, entry.logprob};
    candidate.golden = entry.id == split.golden.id;
    candidate.result = entry.id == other;
    split.top.push_back(std::move(candidate));
  }
  return split;
}

void count(Reanchoring& found, Split split) {
  ++(split.near_tie ? found.near_ties : split.routing_tie ? found.routing_ties : found.true_splits);
  if (found.splits.size() < kMaxSplits) found.splits.push_back(std::move(split));
}

// Golden and judged run have equal tokens behind position `index`, and there are some.
bool agree_behind(const std::vector<int32_t>& golden, const std::vector<int32_t>& judged, size_t index) {
  return golden.size() == judged.size() && index + 1 < golden.size() &&
         std::equal(golden.begin() + static_cast<ptrdiff_t>(index) + 1, golden.end(),
                    judged.begin() + static_cast<ptrdiff_t>(index) + 1);
}

}  // namespace

int64_t first_divergent(const std::vector<int32_t>& golden_tokens, const RequestRecord& actual) {
  if (!actual.tokens) return -1;
  const auto both = std::min(golden_tokens.size(), actual.tokens->size());
  for (size_t i = 0; i < both; ++i) {
    if (golden_tokens[i] != (*actual.tokens)[i]) return static_cast<int64_t>(i);
  }
  return golden_tokens.size() == actual.tokens->size() ? -1 : static_cast<int64_t>(both);
}

Reanchoring reanchor(const ReanchorInput& input) {
  const RerunRequest& again = *input.again;
  Reanchoring found;
  found.tie_limit_ulps = input.rule->ulps;
  found.tie_limit_nats = input.rule->noise;
  if (!again.not_done.empty()) {
    found.not_done = again.not_done;
    return found;
  }
  found.method = input.method;
  found.positions = again.positions.size();
  const int64_t first = first_divergent(again.golden_tokens, *input.actual);
  const std::vector<bool> by_routing = routing_ties(again, *input.golden, *input.rule);
  for (size_t i = 0; i < again.positions.size(); ++i) {
    const int32_t golden = again.golden_tokens[i];
    if (again.positions[i].top.empty()) {
      found.not_done = "the engine gave no top-n logprobs at generated token " + std::to_string(i);
      found.method.clear();
      return found;
    }
    const int32_t preferred = again.positions[i].top.front().id;
    const bool here = static_cast<int64_t>(i) == first && i < input.actual->tokens->size();
    const int32_t judged = here ? (*input.actual->tokens)[i] : golden;
    Split split = split_at(input, i, here && preferred == golden ? judged : preferred);
    if (here) found.reproduced = preferred == judged || split_at(input, i, judged).near_tie;
    if (preferred == golden && !(here && split.near_tie)) continue;
    found.lone = here && !split.near_tie && agree_behind(again.golden_tokens, *input.actual->tokens, i);
    split.routing_tie = !split.near_tie && !found.lone && by_routing[i];
    count(found, std::move(split));
    // Behind a golden token that nobody generated, the rest of the golden belongs to another text.
    if (found.lone) break;
  }
  if (found.positions == again.golden_tokens.size() && again.further > 0) {
    // The golden ends where the engine goes on: an end of document against a token, whose gap nobody records.
    Split beyond;
    beyond.index = static_cast<int64_t>(again.golden_tokens.size());
    if (first == beyond.index) found.reproduced = true;
    count(found, std::move(beyond));
  } else if (found.positions < again.golden_tokens.size()) {
    found.not_done = "only " + std::to_string(found.positions) + " of the golden's " +
                     std::to_string(again.golden_tokens.size()) + " tokens were looked at";
  }
  if (again.record) {
    const size_t values = std::min(joined_logprobs(*input.golden).size(), joined_logprobs(*again.record).size());
    found.logprobs = logprob_statistics(*input.golden, *again.record, values, input.tolerance);
  }
  return found;
}

std::vector<double> joined_logprobs(const RequestRecord& record) {
  if (record.logprobs) return *record.logprobs;
  if (!record.generated_logprobs) return {};
  std::vector<double> joined = record.prompt_logprobs.value_or(std::vector<double>());
  joined.insert(joined.end(), record.generated_logprobs->begin(), record.generated_logprobs->end());
  return joined;
}

size_t logprob_count(const RequestRecord& record) {
  if (record.logprobs) return record.logprobs->size();
  if (!record.generated_logprobs) return 0;
  return record.generated_logprobs->size() + (record.prompt_logprobs ? record.prompt_logprobs->size() : 0);
}

std::optional<LogprobStatistics> logprob_statistics(const RequestRecord& golden, const RequestRecord& result,
                                                    size_t count, double tolerance) {
  const std::vector<double> a = joined_logprobs(golden);
  const std::vector<double> b = joined_logprobs(result);
  const size_t values = std::min({count, a.size(), b.size()});
  if (values == 0) return std::nullopt;
  LogprobStatistics statistics;
  statistics.count = values;
  statistics.tolerance = tolerance;
  std::vector<double> differences;
  double sum = 0;
  for (size_t i = 0; i < values; ++i) {
    const double difference = std::fabs(a[i] - b[i]);
    if (!(difference <= tolerance)) ++statistics.over;
    if (!std::isfinite(difference)) continue;
    differences.push_back(difference);
    sum += difference;
    if (difference > statistics.max || statistics.max_index < 0) {
      statistics.max = difference;
      statistics.max_index = static_cast<int64_t>(i);
    }
  }
  if (differences.empty()) return statistics;
  statistics.mean = sum / static_cast<double>(differences.size());
  // The smallest value that 99 % do not exceed.
  const size_t rank = (differences.size() * 99 + 99) / 100 - 1;
  std::nth_element(differences.begin(), differences.begin() + static_cast<ptrdiff_t>(rank), differences.end());
  statistics.p99 = differences[rank];
  return statistics;
}

}  // namespace assay::compare
