#include "core/compare/reason.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <vector>

#include "core/compare/judge.h"
#include "core/golden/text.h"

namespace assay::compare {
namespace {

struct Totals {
  size_t requests = 0;
  uint64_t compared = 0;
  double max_abs_difference = 0;
};

Totals totals_of(const MetricVerdict& metric) {
  Totals totals;
  std::set<std::string_view> requests;
  for (const Finding& finding : metric.findings) {
    if (finding.note) continue;
    if (!finding.request.empty()) requests.insert(finding.request);
    totals.compared += finding.compared;
    totals.max_abs_difference = std::max(totals.max_abs_difference, finding.max_abs_difference);
  }
  totals.requests = requests.size();
  return totals;
}

std::string failing_reason(const CaseVerdict& verdict) {
  const Finding* first = nullptr;
  std::string metric;
  size_t others = 0;
  for (const MetricVerdict& judged : verdict.metrics) {
    for (const Finding& finding : judged.findings) {
      if (finding.note || finding.verdict != verdict.verdict) continue;
      if (first != nullptr) {
        ++others;
        continue;
      }
      first = &finding;
      metric = judged.metric;
    }
  }
  if (first == nullptr) return "no finding explains this verdict";
  const std::string head = metric == kRequestsMetric ? "" : metric + ": ";
  const std::string request = first->request.empty() ? "" : fmt::format("request {}: ", first->request);
  const std::string tail = others > 0 ? fmt::format(" (and {} more)", others) : "";
  return text::printable(head + request + first->message + tail);
}

}  // namespace

std::string summary_of(const MetricVerdict& metric) {
  const Totals totals = totals_of(metric);
  const std::string difference = metric.verdict == Verdict::kIdentical ? "equal"
                                 : totals.max_abs_difference > 0
                                     ? fmt::format("within tolerance, max |Δ| {:.3g}", totals.max_abs_difference)
                                     : "equal but for near-ties";
  const std::string where =
      totals.requests > 0 ? fmt::format(" of {} request{}", totals.requests, totals.requests == 1 ? "" : "s") : "";
  return fmt::format("{} value{}{} {}", totals.compared, totals.compared == 1 ? "" : "s", where, difference);
}

std::string reason_of(const CaseVerdict& verdict) {
  if (!passes(verdict.verdict)) return failing_reason(verdict);
  std::vector<std::string> parts;
  for (const MetricVerdict& metric : verdict.metrics) {
    if (metric.metric != kRequestsMetric) parts.push_back(fmt::format("{}: {}", metric.metric, summary_of(metric)));
  }
  return text::printable(fmt::format("{}", fmt::join(parts, "; ")));
}

}  // namespace assay::compare
