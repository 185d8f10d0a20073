#include "core/report/junit.h"

#include <fmt/format.h>

#include <cstdio>
#include <fstream>
#include <set>

#include "core/report/xml_text.h"

namespace assay::report {
namespace {

enum class Outcome { kPass, kFailure, kError, kSkipped };

Outcome outcome(Verdict verdict, bool strict) {
  if (verdict == Verdict::kSkipped) return Outcome::kSkipped;
  if (passes(verdict, strict)) return Outcome::kPass;
  const bool broken = verdict == Verdict::kInvalid || verdict == Verdict::kCrashed || verdict == Verdict::kInfra;
  return broken ? Outcome::kError : Outcome::kFailure;
}

// "a/b/c" -> class name "a.b", so that GitLab and Jenkins group cases by folder.
std::string class_name(const std::string& name) {
  const size_t slash = name.rfind('/');
  std::string folder = slash == std::string::npos ? "assay" : name.substr(0, slash);
  for (char& c : folder) c = c == '/' ? '.' : c;
  return folder;
}

std::string unique_name(const std::string& name, std::set<std::string>& used) {
  std::string candidate = name;
  for (int number = 2; !used.insert(candidate).second; ++number) candidate = fmt::format("{} ({})", name, number);
  return candidate;
}

std::string testcase(const ReportCase& report, const std::string& name, bool strict) {
  std::string xml = fmt::format("  <testcase name=\"{}\" classname=\"{}\" time=\"{:.6f}\">\n", xml_escape(name),
                                xml_escape(class_name(report.name)), report.seconds);
  const auto element = [&](const char* tag) {
    xml += fmt::format("    <{0} message=\"{1}\" type=\"{2}\">{3}</{0}>\n", tag, xml_escape(report.verdict.reason),
                       to_string(report.verdict.verdict), xml_escape(evidence_text(report)));
  };
  switch (outcome(report.verdict.verdict, strict)) {
    case Outcome::kPass:
      break;
    case Outcome::kFailure:
      element("failure");
      break;
    case Outcome::kError:
      element("error");
      break;
    case Outcome::kSkipped:
      xml += fmt::format("    <skipped message=\"{}\"/>\n", xml_escape(report.verdict.reason));
      break;
  }
  if (!report.summary.empty()) xml += fmt::format("    <system-out>{}</system-out>\n", xml_escape(report.summary));
  if (!report.log_tail.empty()) xml += fmt::format("    <system-err>{}</system-err>\n", xml_escape(report.log_tail));
  return xml + "  </testcase>\n";
}

}  // namespace

std::string junit_xml(const std::vector<ReportCase>& cases, bool strict) {
  int failures = 0;
  int errors = 0;
  int skipped = 0;
  double seconds = 0;
  std::string body;
  std::set<std::string> used;
  for (const ReportCase& report : cases) {
    const Outcome result = outcome(report.verdict.verdict, strict);
    failures += result == Outcome::kFailure ? 1 : 0;
    errors += result == Outcome::kError ? 1 : 0;
    skipped += result == Outcome::kSkipped ? 1 : 0;
    seconds += report.seconds;
    body += testcase(report, unique_name(report.name, used), strict);
  }
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n<testsuite name=\"assay\" tests=\"{}\" "
      "failures=\"{}\" "
      "errors=\"{}\" skipped=\"{}\" time=\"{:.6f}\">\n{}</testsuite>\n</testsuites>\n",
      cases.size(), failures, errors, skipped, seconds, body);
}

Status write_junit(const std::string& path, const std::vector<ReportCase>& cases, bool strict) {
  const std::string temporary = path + ".tmp";
  std::ofstream file(temporary, std::ios::binary | std::ios::trunc);
  file << junit_xml(cases, strict);
  file.close();
  if (!file || std::rename(temporary.c_str(), path.c_str()) != 0) {
    return infra(
        fmt::format("{}: the JUnit report cannot be written; check that the folder exists and has room", path));
  }
  return {};
}

}  // namespace assay::report
