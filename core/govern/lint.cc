#include "core/govern/lint.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <tuple>

#include "core/discover/discover.h"
#include "core/golden/file.h"
#include "core/golden/golden_name.h"
#include "core/golden/pending.h"
#include "core/govern/record.h"

namespace assay::govern {
namespace {

namespace fs = std::filesystem;

// A file that somebody may take for a golden: its name begins like one.
bool looks_like_golden(const std::string& file) {
  std::string lower;
  for (const unsigned char c : file) lower += static_cast<char>(c == '-' || c == ' ' ? '_' : std::tolower(c));
  return lower.starts_with("golden_value") && lower.find(".json") != std::string::npos;
}

class Linter {
 public:
  Linter(const LintOptions& options, LintReport& report) : options_(options), report_(report) {}

  void case_folder(const TestCase& test) {
    folders_.insert(canonical(test.dir));
    if (!test.error.ok()) {
      add(LintLevel::kNote, "config", test.config, "the case cannot be read, so nothing is held against it");
    }
    bool all_known = true;
    bool looked = false;
    for (const GoldenFile& golden : test.goldens) {
      if (!selected(golden.environment, golden.platform)) continue;
      const std::string path = (fs::path(test.dir) / golden.file).string();
      const bool inference = test.error.ok() && test.mode == "inference";
      file(path, inference);
      if (!inference) continue;
      bool known = true;
      if (test.assay.metamorphic) {
        add(LintLevel::kNote, "unused", path,
            "relations judge this case (ASSAY.metamorphic): nothing reads its golden");
        continue;
      }
      append(lint_against_case(path, test, options_.variables, &known));
      looked = true;
      all_known = all_known && known;
    }
    if (looked && !all_known) ++report_.unresolved_prompts;
    pending_files(test, test.dir);
    if (!options_.pending_dir.empty()) pending_files(test, pending_folder(test.dir, options_.pending_dir));
  }

  // Goldens that no case folder holds, and files that only look like goldens.
  void strays(const std::string& root) {
    std::error_code error;
    if (!fs::is_directory(root, error)) return;
    const auto skip = fs::directory_options::skip_permission_denied;
    for (fs::recursive_directory_iterator at(root, skip, error), end; !error && at != end; at.increment(error)) {
      const std::string file_name = at->path().filename().string();
      std::error_code unknown;
      if (file_name == ".git" && at->is_directory(unknown)) at.disable_recursion_pending();
      if (!looks_like_golden(file_name) || at->is_directory(unknown)) continue;
      stray(at->path(), file_name);
    }
  }

 private:
  static std::string canonical(const fs::path& path) {
    std::error_code error;
    const fs::path real = fs::weakly_canonical(path, error);
    return error ? path.string() : real.string();
  }

  bool selected(const std::string& environment, const std::string& platform) const {
    return (options_.environment.empty() || options_.environment == environment) &&
           (options_.platform.empty() || options_.platform == platform);
  }

  void add(LintLevel level, std::string rule, std::string path, std::string message) {
    report_.findings.push_back({level, std::move(rule), std::move(path), std::move(message)});
  }

  void append(std::vector<LintFinding> findings) {
    for (LintFinding& finding : findings) report_.findings.push_back(std::move(finding));
  }

  void file(const std::string& path, bool inference) {
    ++report_.goldens;
    append(lint_golden_name(path));
    const auto text = read_file(path);
    if (!text) return add(LintLevel::kError, "json", path, text.status().message());
    append(lint_golden_text(path, *text, inference, options_.require_provenance && inference));
  }

  void pending_files(const TestCase& test, const std::string& folder) {
    const auto paths = list_pending(folder);
    if (!paths) return add(LintLevel::kError, "pending", folder, paths.status().message());
    for (const std::string& path : *paths) {
      ++report_.pending;
      const auto pending = read_pending(path, test.dir);
      if (!pending) {
        add(LintLevel::kError, "pending", path, pending.status().message());
        continue;
      }
      const auto judging = judging_golden(*pending);
      const auto digest = judging ? golden_digest(*judging) : Result<std::string>(judging.status());
      if (digest && *digest == pending->info.golden_sha256) {
        add(LintLevel::kNote, "pending", path, "waits for 'assay review' since " + pending->info.recorded_at);
      } else {
        add(LintLevel::kError, "stale-pending", path,
            digest ? "the golden changed after this was recorded: record again, or 'assay reject'"
                   : digest.status().message());
      }
    }
  }

  void stray(const fs::path& path, const std::string& file_name) {
    const bool in_case = folders_.count(canonical(path.parent_path())) != 0;
    const auto name = parse_golden_name(file_name);
    if (name && in_case) return;  // linted with its case
    if (!name && file_name.find(".json.") != std::string::npos) {
      return add(LintLevel::kNote, "leftover", path.string(),
                 "left behind by a writer that was interrupted: remove it");
    }
    if (name && name->pending) {
      return add(LintLevel::kError, "orphan", path.string(), "a pending golden in a folder without model_config.yaml");
    }
    if (!name) return append(lint_golden_name(path.string()));
    if (!selected(name->environment, name->platform)) return;
    file(path.string(), false);
    add(LintLevel::kError, "orphan", path.string(), "a golden in a folder without model_config.yaml: no case uses it");
  }

  const LintOptions& options_;
  LintReport& report_;
  std::set<std::string> folders_;  // of cases, canonical
};

}  // namespace

size_t LintReport::count(LintLevel level) const {
  return static_cast<size_t>(std::count_if(findings.begin(), findings.end(),
                                           [&](const LintFinding& finding) { return finding.level == level; }));
}

Result<LintReport> lint(const std::vector<std::string>& paths, const LintOptions& options) {
  const auto cases = discover::discover(paths);
  if (!cases) return cases.status();
  LintReport report;
  report.cases = cases->size();
  Linter linter(options, report);
  for (const TestCase& test : *cases) linter.case_folder(test);
  for (const std::string& path : paths) linter.strays(path);
  std::stable_sort(report.findings.begin(), report.findings.end(), [](const LintFinding& a, const LintFinding& b) {
    return std::tie(a.path, a.rule) < std::tie(b.path, b.rule);
  });
  return report;
}

}  // namespace assay::govern
