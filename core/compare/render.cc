#include "core/compare/render.h"

#include <fmt/format.h>

#include "core/compare/reason.h"

namespace assay::compare {

std::string render_verdict_text(const CaseVerdict& verdict, bool every_request) {
  std::string out = fmt::format("{}: {}\n", to_string(verdict.verdict), verdict.reason);
  out += fmt::format("golden: {}\n", verdict.golden.empty() ? "none" : verdict.golden);
  if (!verdict.declared.empty()) {
    const std::string judged = verdict.judged ? fmt::format("judged {}, ", to_string(*verdict.judged)) : "";
    out += fmt::format("declared: {}{}\n", judged, verdict.declared);
  }
  for (const std::string& line : verdict.environment) out += fmt::format("environment: {}\n", line);
  for (const MetricVerdict& metric : verdict.metrics) {
    out += fmt::format("  {:<18} {}", metric.metric, to_string(metric.verdict));
    uint64_t compared = 0;
    for (const Finding& finding : metric.findings) compared += finding.note ? 0 : finding.compared;
    if (passes(metric.verdict) && compared > 0) out += fmt::format("  {}", summary_of(metric));
    out += '\n';
    for (const Finding& finding : metric.findings) {
      if (!finding.note && passes(finding.verdict) && !every_request) continue;
      const std::string request = finding.request.empty() ? "" : fmt::format("request {}: ", finding.request);
      const std::string_view tag = finding.note ? "note" : to_string(finding.verdict);
      out += fmt::format("    {}: {}{}\n", tag, request, finding.message);
    }
  }
  return out;
}

}  // namespace assay::compare
