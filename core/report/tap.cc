#include "core/report/tap.h"

#include <fmt/format.h>

#include "core/golden/json_text.h"
#include "core/golden/text.h"
#include "core/report/wording.h"
#include "core/report/write_file.h"

namespace assay::report {
namespace {

// One line in which '#' and '\' do not count as TAP's own.
std::string description(std::string_view text) {
  std::string out;
  for (const char c : text::printable(text)) {
    if (c == '#' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string yaml(std::string_view name, std::string_view value) {
  if (value.empty()) return "";
  std::string out = fmt::format("  {}: ", name);
  json::append_string(out, value);  // a JSON string is a YAML string
  return out + "\n";
}

std::string point(const ReportCase& report, size_t number, const std::string& name, bool strict) {
  const Verdict verdict = report.verdict.verdict;
  const bool declared = verdict == Verdict::kXfail || verdict == Verdict::kWaived;
  const bool fine = !declared && !fails(verdict, strict);
  std::string out = fmt::format("{} {} - {}", fine ? "ok" : "not ok", number, description(name));
  if (verdict == Verdict::kSkipped) out += " # SKIP " + description(report.verdict.reason);
  if (declared) out += " # TODO " + description(report.verdict.declared);
  out += '\n';
  if (fine) return out;
  return out + "  ---\n" + yaml("verdict", to_string(verdict)) + yaml("message", report.verdict.reason) +
         yaml("relation", report.relation) + yaml(golden_word(report), report.verdict.golden) +
         yaml("reproduce", report.reproduce) + fmt::format("  duration_ms: {:.3f}\n  ...\n", report.seconds * 1e3);
}

}  // namespace

std::string tap_text(const ReportRun& run) {
  std::string out =
      fmt::format("TAP version 14\n1..{}{}\n", run.cases.size(), run.cases.empty() ? " # SKIP no case ran" : "");
  const std::vector<std::string> names = unique_names(run.cases);
  for (size_t i = 0; i < run.cases.size(); ++i) out += point(run.cases[i], i + 1, names[i], run.strict);
  if (!run.finished) out += "Bail out! " + incomplete_text(run) + "\n";
  return out;
}

Status write_tap(const std::string& path, const ReportRun& run) {
  return write_report(path, tap_text(run), "TAP report");
}

}  // namespace assay::report
