// One golden file by itself.
#include <fmt/format.h>

#include <algorithm>

#include "assay/golden.h"
#include "assay/provenance.h"
#include "core/compare/checks.h"
#include "core/golden/json_text.h"
#include "core/golden/key_scan.h"
#include "core/golden/stable_text.h"
#include "core/golden/text.h"
#include "core/govern/lint.h"

namespace assay::govern {
namespace {

class Findings {
 public:
  explicit Findings(std::string path) : path_(std::move(path)) {}
  void error(std::string rule, std::string message) { add(LintLevel::kError, std::move(rule), std::move(message)); }
  void note(std::string rule, std::string message) { add(LintLevel::kNote, std::move(rule), std::move(message)); }
  std::vector<LintFinding> take() { return std::move(found_); }

 private:
  void add(LintLevel level, std::string rule, std::string message) {
    if (message.starts_with(path_ + ": ")) message.erase(0, path_.size() + 2);
    found_.push_back({level, std::move(rule), path_, std::move(message)});
  }

  std::string path_;
  std::vector<LintFinding> found_;
};

// Lines that version control leaves where two changes met. JSON has no line that begins so.
std::vector<size_t> conflict_lines(std::string_view text) {
  std::vector<size_t> lines;
  size_t line = 1;
  for (size_t at = 0; at < text.size(); ++line) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view one = text.substr(at, end - at);
    if (one.starts_with("<<<<<<<") || one.starts_with(">>>>>>>") || one.starts_with("=======") ||
        one.starts_with("|||||||")) {
      lines.push_back(line);
    }
    at = end + 1;
  }
  return lines;
}

void scan_foreign(std::string_view text, Findings& findings) {
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) {
    return findings.error("json", "is empty; expected a JSON object");
  }
  const json::Blanked blanked = json::blank_nonfinite(text);
  const std::string_view readable = blanked.text(text);
  const json::KeyScan scan = json::scan_keys(readable);
  if (!scan.error.empty()) return findings.error("json", "not valid JSON: " + scan.error);
  for (const std::string& name : scan.twice) {
    findings.error("duplicate-key", text::quoted(name, 60) + " occurs more than once in one object");
  }
  if (!blanked.nonfinite.empty()) {
    findings.error("non-finite", fmt::format("{} values are NaN or infinite, first number {} of the file",
                                             blanked.nonfinite.size(), blanked.nonfinite.front().ordinal + 1));
  }
}

void check_meta(const ResultSet& set, bool required, Findings& findings) {
  const auto meta = parse_golden_meta(set.extra);
  if (!meta) return findings.error("provenance", meta.status().message());
  if (meta->provenance) return;
  const std::string message = "nothing says which engine, device and weights these values come from";
  if (required) {
    findings.error("provenance", message);
  } else {
    findings.note("provenance", message);
  }
}

void check_requests(const ResultSet& set, Findings& findings) {
  for (const std::string& note : set.notes) {
    if (note.find("occurs more than once") != std::string::npos) findings.error("duplicate-key", note);
  }
  for (const Finding& finding : compare::nonfinite_values("golden", set)) {
    findings.error("non-finite", finding.request.empty()
                                     ? finding.message
                                     : fmt::format("request {}: {}", finding.request, finding.message));
  }
  if (set.requests.empty() && set.quantities.empty()) findings.error("empty", "holds no request");
}

}  // namespace

std::vector<LintFinding> lint_golden_text(const std::string& path, const std::string& text, bool inference,
                                          bool require_provenance) {
  Findings findings(path);
  if (const std::vector<size_t> lines = conflict_lines(text); !lines.empty()) {
    findings.error("conflict-markers", fmt::format("merge conflict at line {} ({} marker lines): record again, or take "
                                                   "one side as a whole",
                                                   lines.front(), lines.size()));
    return findings.take();
  }
  if (!inference) {
    scan_foreign(text, findings);
    return findings.take();
  }
  const auto set = read_results_text(text, path);
  if (!set) {
    findings.error("json", set.status().message());
    return findings.take();
  }
  check_requests(*set, findings);
  check_meta(*set, require_provenance, findings);
  if (stable_text(*set) != text) {
    findings.note("layout", "not in the stable layout (sorted keys, one value a line); 'assay accept' writes it");
  }
  return findings.take();
}

}  // namespace assay::govern
