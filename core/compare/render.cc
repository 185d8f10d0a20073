#include "core/compare/render.h"

#include <fmt/format.h>

#include "core/compare/reason.h"
#include "core/compare/settle.h"
#include "core/golden/text.h"

namespace assay::compare {
namespace {

// Where one request parts, in brief: the first divergent token, its candidates, and what the rerun counted.
std::string evidence_lines(const RequestEvidence& one) {
  if (one.first_divergent < 0 || !one.split) return "";
  std::string out = fmt::format("  request {} parts at generated token {} of {}: golden {}, result {}", one.request,
                                one.first_divergent, one.golden_tokens, token_text(one.split->golden, 4),
                                token_text(one.split->result, 4));
  if (one.split->gap) out += fmt::format(", gap {:.3g} nats", *one.split->gap);
  if (one.split->gap_ulps) out += fmt::format(" = {:.3g} ULP", *one.split->gap_ulps);
  if (one.split->golden_rank) out += fmt::format(", golden at place {}", *one.split->golden_rank + 1);
  out += '\n';
  if (!one.reanchoring) return out;
  const Reanchoring& rerun = *one.reanchoring;
  if (rerun.method.empty()) return out + fmt::format("    not re-anchored: {}\n", rerun.not_done);
  out += fmt::format("    re-anchored ({}) over {}{}\n", rerun.method, counts_of(rerun),
                     rerun.reproduced ? "" : "; not reproduced");
  if (rerun.logprobs) {
    out += fmt::format(
        "    logprobs on the golden's tokens: max |Δ| {:.3g}, mean {:.3g}, p99 {:.3g}, {} of {} over {:g}\n",
        rerun.logprobs->max, rerun.logprobs->mean, rerun.logprobs->p99, rerun.logprobs->over, rerun.logprobs->count,
        rerun.logprobs->tolerance);
  }
  return out;
}

}  // namespace

std::string render_verdict_text(const CaseVerdict& verdict, bool every_request) {
  std::string out = fmt::format("{}: {}\n", to_string(verdict.verdict), verdict.reason);
  out += fmt::format("golden: {}\n", verdict.golden.empty() ? "none was read" : verdict.golden);
  if (!verdict.declared.empty()) {
    const std::string judged = verdict.judged ? fmt::format("judged {}, ", to_string(*verdict.judged)) : "";
    out += fmt::format("declared: {}{}\n", judged, verdict.declared);
  }
  if (verdict.compat) out += compat_line(verdict) + "\n";
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
  for (const RequestEvidence& one : verdict.evidence) out += evidence_lines(one);
  return out;
}

}  // namespace assay::compare
