// Looks for golden files that cannot do their work, without any engine.
#pragma once

#include <string>
#include <vector>

#include "assay/case.h"
#include "assay/status.h"
#include "core/discover/substitute.h"

namespace assay::govern {

enum class LintLevel { kError, kNote };

struct LintFinding {
  LintLevel level = LintLevel::kError;
  std::string rule;  // see docs/governance.md
  std::string path;
  std::string message;  // one line
};

struct LintOptions {
  std::string environment = {};  // goldens of this environment alone; empty: all
  std::string platform = {};     // the same
  bool require_provenance = false;
  discover::Variables variables = {};  // for prompts; unset variables only leave prompts unresolved
  std::string pending_dir = {};        // besides those in the case folders
};

struct LintReport {
  size_t cases = 0;
  size_t goldens = 0;  // looked at
  size_t pending = 0;
  size_t unresolved_prompts = 0;      // inference cases with goldens whose prompts could not be told
  std::vector<LintFinding> findings;  // by path, then rule
  size_t count(LintLevel level) const;
};

// Lints all golden and pending files below `paths`, of cases and elsewhere. A golden is held against its own case
// alone: what another filter, shard or platform would run never makes it obsolete. Fails like discover().
Result<LintReport> lint(const std::vector<std::string>& paths, const LintOptions& options);

// --- parts, each a pure function over what it is given ---

// Conflict markers, broken JSON, keys that occur twice, NaN and infinities, provenance, layout. `inference`: the file
// holds requests; else it is only held against JSON (Megatron-LM's training goldens). Nothing about the case.
std::vector<LintFinding> lint_golden_text(const std::string& path, const std::string& text, bool inference,
                                          bool require_provenance);

// Environment and platform in the name of a golden file: odd characters, words that are near a known one but not it.
std::vector<LintFinding> lint_golden_name(const std::string& path);

// Requests, prompts and METRICS of the case against one golden. `prompts_known` is set to false where the case's
// prompts cannot be told.
std::vector<LintFinding> lint_against_case(const std::string& path, const TestCase& test,
                                           const discover::Variables& variables, bool* prompts_known);

}  // namespace assay::govern
