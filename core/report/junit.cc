#include "core/report/junit.h"

#include <fmt/format.h>

#include "core/golden/text.h"
#include "core/report/wording.h"
#include "core/report/write_file.h"
#include "core/report/xml_text.h"

namespace assay::report {
namespace {

// "a/b/c" -> class name "a.b", so that GitLab and Jenkins group cases by folder.
std::string class_name(const std::string& name) {
  const size_t slash = name.rfind('/');
  std::string folder = slash == std::string::npos ? "assay" : name.substr(0, slash);
  for (char& c : folder) c = c == '/' ? '.' : c;
  return folder;
}

// At most kMaxJunitText bytes, cut between code points.
std::string bounded(std::string_view text) {
  if (text.size() <= kMaxJunitText) return xml_escape(text);
  size_t end = 0;
  while (end < kMaxJunitText) end += text::decode(text, end).length;
  return xml_escape(text.substr(0, end)) + fmt::format("... ({} bytes more)", text.size() - end);
}

class Properties {
 public:
  explicit Properties(std::string margin) : margin_(std::move(margin)) {}

  void add(std::string_view name, const std::string& value) {
    if (value.empty()) return;
    list_ += fmt::format("{}  <property name=\"{}\" value=\"{}\"/>\n", margin_, name, bounded(value));
  }
  std::string xml() const {
    return list_.empty() ? "" : fmt::format("{0}<properties>\n{1}{0}</properties>\n", margin_, list_);
  }

 private:
  std::string margin_;
  std::string list_;
};

std::string properties(const ReportCase& report) {
  Properties list("    ");
  list.add("verdict", std::string(to_string(report.verdict.verdict)));
  list.add("relation", report.relation);
  list.add(golden_word(report), report.verdict.golden);
  list.add("declared", report.verdict.declared);
  list.add("compat", compat_line(report.verdict));
  list.add("engine", report.figures.engine);
  list.add("backend", report.figures.backend);
  list.add("device", report.figures.device);
  list.add("reproduce", report.reproduce);
  return list.xml();
}

std::string element(const char* tag, const ReportCase& report) {
  return fmt::format("    <{0} message=\"{1}\" type=\"{2}\">{3}</{0}>\n", tag, bounded(report.verdict.reason),
                     to_string(report.verdict.verdict), bounded(evidence_text(report)));
}

// An element for each repeat that does not pass; one for the whole where the repeats are not known.
std::string repeat_elements(const char* tag, const ReportCase& report, bool strict) {
  if (report.repeats.empty()) return element(tag, report);
  std::string xml;
  for (size_t i = 0; i < report.repeats.size(); ++i) {
    const ReportRepeat& one = report.repeats[i];
    if (!fails(one.verdict, strict)) continue;
    xml += fmt::format("    <{0} message=\"{1}\" type=\"{2}\">repeat {3}: {1}</{0}>\n", tag, bounded(one.reason),
                       to_string(one.verdict), i + 1);
  }
  return xml;
}

bool flaky(const CaseVerdict& verdict) {
  return verdict.verdict == Verdict::kFlaky || (verdict.judged && *verdict.judged == Verdict::kFlaky);
}

std::string testcase(const ReportCase& report, const std::string& name, bool strict) {
  const std::string file =
      report.path.empty() ? "" : fmt::format(" file=\"{}\"", xml_escape(report.path + "/model_config.yaml"));
  std::string xml = fmt::format("  <testcase name=\"{}\" classname=\"{}\" time=\"{:.6f}\"{}>\n", xml_escape(name),
                                xml_escape(class_name(report.name)), report.seconds, file);
  xml += properties(report);
  switch (outcome(report.verdict.verdict, strict)) {
    case Outcome::kPass:
      if (flaky(report.verdict)) xml += repeat_elements("flakyFailure", report, strict);
      break;
    case Outcome::kFailure:
      xml += element("failure", report);
      if (flaky(report.verdict)) xml += repeat_elements("rerunFailure", report, strict);
      break;
    case Outcome::kError:
      xml += element("error", report);
      break;
    case Outcome::kSkipped:
      xml += fmt::format("    <skipped message=\"{}\"/>\n", bounded(report.verdict.reason));
      break;
  }
  if (!report.summary.empty()) xml += fmt::format("    <system-out>{}</system-out>\n", bounded(report.summary));
  if (!report.log_tail.empty()) xml += fmt::format("    <system-err>{}</system-err>\n", bounded(report.log_tail));
  return xml + "  </testcase>\n";
}

// "2026-11-29T19:22:41", as the schema wants it.
std::string timestamp(double seconds) {
  std::string text = utc_text(seconds);
  if (text.size() < 19) return "";
  text[10] = 'T';
  return fmt::format(" timestamp=\"{}\"", text.substr(0, 19));
}

}  // namespace

std::string junit_xml(const ReportRun& run) {
  size_t failures = 0;
  size_t errors = 0;
  size_t skipped = 0;
  double seconds = 0;
  const std::vector<std::string> names = unique_names(run.cases);
  std::string body;
  for (size_t i = 0; i < run.cases.size(); ++i) {
    const Outcome result = outcome(run.cases[i].verdict.verdict, run.strict);
    failures += result == Outcome::kFailure ? 1 : 0;
    errors += result == Outcome::kError ? 1 : 0;
    skipped += result == Outcome::kSkipped ? 1 : 0;
    seconds += run.cases[i].seconds;
    body += testcase(run.cases[i], names[i], run.strict);
  }
  Properties facts("  ");
  facts.add("run", run.run_id);
  facts.add("command", run.command);
  facts.add("results", run.folder);
  facts.add("assay", run.version);
  if (!run.finished) facts.add("incomplete", incomplete_text(run));
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n<testsuite name=\"assay\" tests=\"{}\" "
      "failures=\"{}\" errors=\"{}\" skipped=\"{}\" time=\"{:.6f}\"{}>\n{}{}</testsuite>\n</testsuites>\n",
      run.cases.size(), failures, errors, skipped, seconds, timestamp(run.started), facts.xml(), body);
}

Status write_junit(const std::string& path, const ReportRun& run) {
  return write_report(path, junit_xml(run), "JUnit report");
}

}  // namespace assay::report
