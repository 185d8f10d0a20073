#include "core/report/html_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/metamorphic/relation.h"
#include "core/report/curves.h"
#include "core/report/diagnosis.h"
#include "core/report/html_evidence.h"
#include "core/report/html_plot.h"
#include "core/report/html_text.h"
#include "core/report/wording.h"

namespace assay::report {
namespace {

constexpr size_t kOpenRequests = 2;     // unfolded at once
constexpr size_t kPlottedRequests = 4;  // of a case
constexpr size_t kFindings = 12;        // shown of a metric

std::string explanation(const ReportCase& report) {
  std::string out = fmt::format("<div class=\"why\"><p><b>What {} means.</b> {}</p>", to_string(report.verdict.verdict),
                                html(verdict_meaning(report)));
  for (const Diagnosis& one : diagnose(report)) {
    std::string sentence = one.sentence;
    if (!sentence.empty() && sentence[0] >= 'a' && sentence[0] <= 'z')
      sentence[0] = static_cast<char>(sentence[0] - 32);
    out += fmt::format("<p><b>Likely cause: {}.</b> {}.</p>", html(one.cause), html(sentence));
  }
  return out + "</div>";
}

std::string facts(const ReportCase& report) {
  std::string out = "<dl>";
  const auto row = [&out](const char* name, const std::string& value) {
    if (!value.empty()) out += fmt::format("<dt>{}<dd>{}", name, html(value));
  };
  const std::optional<metamorphic::Relation> relation = metamorphic::parse_relation(report.relation);
  if (relation) {
    const metamorphic::RelationInfo& info = metamorphic::info_of(*relation);
    row("relation", report.relation);
    row("reference", std::string(info.reference));
    row("changed", std::string(info.changed));
    row("must happen", std::string(info.mechanism));
    row("reference results", report.verdict.golden);
  } else {
    row("golden", report.verdict.golden.empty() ? "none" : report.verdict.golden);
  }
  row("ran on", report.summary);
  row("declared", report.verdict.declared);
  if (report.verdict.judged) row("without that", std::string(to_string(*report.verdict.judged)));
  row("compat", compat_line(report.verdict));
  row("case folder", report.path);
  row(relation ? "changed results" : "results", report.actual);
  row("time", duration(report.seconds));
  return out + "</dl>";
}

std::string environment(const CaseVerdict& verdict) {
  if (verdict.environment.empty()) return "";
  std::string out = "<h4>What differs from the golden's provenance</h4><ul>";
  for (const std::string& line : verdict.environment) out += fmt::format("<li>{}", html(line));
  return out + "</ul>";
}

struct MetricSums {
  uint64_t compared = 0;
  uint64_t differing = 0;
  double difference = 0;
  double tolerance = 0;  // smallest that passes
};

MetricSums sums_of(const MetricVerdict& metric) {
  MetricSums sums;
  for (const Finding& finding : metric.findings) {
    if (finding.note) continue;
    sums.compared += finding.compared;
    sums.differing += finding.differing;
    sums.difference = std::max(sums.difference, finding.max_abs_difference);
    sums.tolerance = std::max(sums.tolerance, finding.smallest_passing_tolerance);
  }
  return sums;
}

std::string tolerance_text(double value) {
  if (value <= 0) return "";
  return std::isfinite(value) ? figure(value) : "none";
}

std::string metrics(const CaseVerdict& verdict, bool strict) {
  if (verdict.metrics.empty()) return "";
  std::string out =
      "<h4>Metrics</h4><table><tr><th>metric<th>verdict<th>compared<th>differing<th>largest difference<th>smallest "
      "tolerance that passes<th>findings";
  for (const MetricVerdict& metric : verdict.metrics) {
    const MetricSums sums = sums_of(metric);
    std::string findings;
    size_t shown = 0;
    size_t hidden = 0;
    for (const Finding& finding : metric.findings) {
      if (!finding.note && passes(finding.verdict, strict)) continue;
      if (++shown > kFindings) {
        ++hidden;
        continue;
      }
      const std::string request = finding.request.empty() ? "" : fmt::format("request {}: ", finding.request);
      findings += fmt::format("<div>{}{}{}</div>", finding.note ? "<span class=\"soft\">note:</span> " : "",
                              html(request), html(finding.message));
    }
    if (hidden > 0) findings += fmt::format("<div class=\"soft\">{} more</div>", hidden);
    out += fmt::format(
        "<tr><td>{}<td>{}<td class=\"n\">{}<td class=\"n\">{}<td class=\"n\">{}<td class=\"n\">{}<td class=\"wide\">{}",
        html(metric.metric), verdict_badge(metric.verdict, strict), sums.compared, sums.differing,
        sums.difference > 0 ? figure(sums.difference) : "", tolerance_text(sums.tolerance), findings);
  }
  return out + "</table>";
}

std::string repeats(const ReportCase& report, bool strict) {
  if (report.repeats.empty()) return "";
  std::string out = "<h4>Repeats</h4><table><tr><th>repeat<th>verdict<th>bit by bit<th>time<th>reason";
  for (size_t i = 0; i < report.repeats.size(); ++i) {
    const ReportRepeat& one = report.repeats[i];
    const std::string bits = one.identical_to_first   ? "as the first"
                             : one.difference.empty() ? "no results"
                                                      : "differs: " + one.difference;
    out += fmt::format("<tr><td class=\"n\">{}<td>{}<td>{}<td class=\"n\">{}<td class=\"wide\">{}", i + 1,
                       verdict_badge(one.verdict, strict), html(bits), duration(one.seconds), html(one.reason));
  }
  return out + "</table>";
}

std::string plots(const ReportCase& report) {
  std::string out;
  for (const RequestCurves& one : read_curves(report, kPlottedRequests)) {
    std::string pair;
    const auto draw = [&](const std::vector<double>& golden, const std::vector<double>& result,
                          const PlotLabels& labels) {
      std::vector<Curve> curves;
      if (!golden.empty()) curves.push_back({golden, "golden", golden_word(report)});
      if (!result.empty()) curves.push_back({result, "result"});
      pair += line_plot(curves, labels);
    };
    draw(one.golden_logprobs, one.result_logprobs,
         {.title = fmt::format("request {}: logprob by position, prompt first", one.request),
          .x_axis = "position",
          .y_axis = "nats",
          .scale = 1});
    draw(one.golden_tpot, one.result_tpot,
         {.title = fmt::format("request {}: time per output token", one.request),
          .x_axis = "token",
          .y_axis = "milliseconds",
          .scale = 1e3});
    out += pair;
  }
  return out.empty() ? ""
                     : "<details><summary>Logprobs and time per token</summary><div class=\"plots\">" + out +
                           "</div></details>";
}

std::string evidence_of(const ReportCase& report) {
  std::string out;
  size_t shown = 0;
  for (const RequestEvidence& evidence : report.verdict.evidence)
    out += evidence_html(evidence, shown++ < kOpenRequests, golden_word(report));
  if (report.verdict.evidence.size() == kMaxEvidenceRequests) {
    out += fmt::format(
        "<p class=\"note\">Evidence is kept of the first {} requests that differ; the findings above name all."
        "</p>",
        kMaxEvidenceRequests);
  }
  return out.empty() ? "" : "<h4>Requests</h4>" + out;
}

}  // namespace

std::string verdict_class(Verdict verdict, bool strict) {
  switch (outcome(verdict, strict)) {
    case Outcome::kSkipped:
      return "skip";
    case Outcome::kError:
      return "error";
    case Outcome::kFailure:
      return "fail";
    case Outcome::kPass:
      return verdict == Verdict::kIdentical ? "pass" : "weak";
  }
  return "fail";
}

std::string verdict_badge(Verdict verdict, bool strict) {
  return fmt::format("<span class=\"badge {}\">{}</span>", verdict_class(verdict, strict), to_string(verdict));
}

std::string history_squares(const ReportCase& report, const ReportRun& run) {
  if (run.history.empty()) return "";
  std::string out = "<span class=\"squares\">";
  const auto square = [&](Verdict verdict, const std::string& title) {
    out += fmt::format("<i class=\"{}\" title=\"{}\">{}</i>", verdict_class(verdict, run.strict), html(title),
                       to_string(verdict)[0]);
  };
  size_t known = 0;
  for (const HistoryRun& earlier : run.history) {
    const auto found = earlier.cases.find(report.name);
    if (found == earlier.cases.end()) continue;
    ++known;
    square(found->second.verdict,
           fmt::format("{}: {}, {}", to_string(found->second.verdict), utc_text(earlier.started), earlier.folder));
  }
  if (known == 0) return "";
  square(report.verdict.verdict, "this run");
  return out + "</span>";
}

std::string case_article(const ReportCase& report, const CaseDrawing& drawing) {
  const ReportRun& run = *drawing.run;
  std::string out =
      fmt::format("<article id=\"{}\"><div class=\"head\">{}<h3>{}</h3></div><p class=\"reason\">{}</p>", drawing.id,
                  verdict_badge(report.verdict.verdict, run.strict), html(drawing.name), html(report.verdict.reason));
  out += explanation(report);
  if (!report.reproduce.empty()) {
    out += fmt::format("<p class=\"soft\">Run it again:</p><code class=\"cmd\">{}</code>", html(report.reproduce));
  }
  out += facts(report);
  if (const std::string squares = history_squares(report, run); !squares.empty()) {
    out += fmt::format("<p class=\"soft\">Earlier runs, oldest first: {}</p>", squares);
  }
  if (drawing.evidence) {
    if (!report.log_tail.empty()) {
      out += fmt::format("<h4>End of the engine's log</h4><pre class=\"log\">{}</pre>", html_block(report.log_tail));
    }
    out += environment(report.verdict) + repeats(report, run.strict) + metrics(report.verdict, run.strict) +
           evidence_of(report);
    if (drawing.curves) out += plots(report);
  } else {
    out +=
        "<p class=\"note\">The page is full: the evidence of this case is in results.jsonl; run it alone to see it "
        "drawn.</p>";
  }
  return out + "</article>";
}

std::string case_row(const ReportCase& report, const std::string& name, bool strict) {
  return fmt::format("<tr><td>{}<td>{}<td>{}<td class=\"n\">{}\n", verdict_badge(report.verdict.verdict, strict),
                     html(name),
                     html(report.verdict.verdict == Verdict::kSkipped ? report.verdict.reason : report.summary),
                     duration(report.seconds));
}

}  // namespace assay::report
