#include "core/report/wording.h"

namespace assay::report {
namespace {

constexpr std::string_view kGolden = "golden";
constexpr std::string_view kReference = "reference";

bool part_of_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("_-/\\").find(c) != std::string_view::npos;
}

// Whether the word at `at` stands alone: "golden.json", "golden/x" and "moe-golden" are names.
bool alone(std::string_view text, size_t at) {
  const size_t end = at + kGolden.size();
  const auto name_at = [text](size_t i) { return i < text.size() && part_of_name(text[i]); };
  if (at > 0 && (part_of_name(text[at - 1]) || text[at - 1] == '.')) return false;
  return !name_at(end) && !(end < text.size() && text[end] == '.' && name_at(end + 1));
}

}  // namespace

std::string_view golden_word(const ReportCase& report) { return report.relation.empty() ? kGolden : kReference; }

std::string worded(const ReportCase& report, std::string_view text) {
  if (report.relation.empty()) return std::string(text);
  std::string out;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\n') quoted = false;  // of a quote that was never closed, no other line suffers
    if (c == '"' && (i == 0 || text[i - 1] != '\\')) quoted = !quoted;
    if (!quoted && text.substr(i).starts_with(kGolden) && alone(text, i)) {
      out += kReference;
      i += kGolden.size() - 1;
    } else {
      out += c;
    }
  }
  return out;
}

void word_verdict(ReportCase* report) {
  if (report->relation.empty()) return;
  CaseVerdict& verdict = report->verdict;
  verdict.reason = worded(*report, verdict.reason);
  for (MetricVerdict& metric : verdict.metrics) {
    for (Finding& finding : metric.findings) finding.message = worded(*report, finding.message);
  }
  for (RequestEvidence& evidence : verdict.evidence) {
    if (!evidence.reanchoring) continue;
    for (std::string* text : {&evidence.reanchoring->not_done, &evidence.reanchoring->contradiction,
                              &evidence.reanchoring->text_contradiction}) {
      *text = worded(*report, *text);
    }
  }
}

}  // namespace assay::report
