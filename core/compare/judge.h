// From two sets of results to the verdict of a case. Comparators observe, this room alone decides.
// Pure functions: no state, safe from any thread (comparators are stateless by contract).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "assay/golden.h"
#include "assay/plugin_abi.h"
#include "assay/provenance.h"
#include "assay/verdict.h"
#include "core/compare/rerun.h"

namespace assay::compare {

// Metric name → comparator, never null; a status where no plugin serves the metric, or the one that does cannot be
// used. The table outlives the call.
using ComparatorLookup = std::function<Result<const assay_comparator_table*>(std::string_view metric)>;

// ASSAY.golden: known_completion. A source is a text file that holds the prompt and how it goes on.
struct KnownCompletion {
  bool enabled = false;
  std::vector<std::string> sources;  // readable paths; empty: the golden's own generated_text is the known completion
};

struct JudgeOptions {
  std::vector<std::string> metrics;          // METRICS in file order; empty gives NOT_COMPARABLE
  std::map<std::string, double> tolerances;  // ASSAY.tolerance: metric → largest accepted |difference|
  KnownCompletion known;
  std::optional<uint64_t> most_tokens = {};  // that a request was asked for, > 0; nullopt: not known
  std::optional<uint64_t> capabilities;      // ASSAY_CAP_* of the engine that made the result; nullopt: not known
  std::map<std::string, std::string> found_out = {};  // capability's name → how it was found out; none: not told
  ComparatorLookup lookup;                            // never empty
};

struct JudgeInput {
  const JudgeOptions* options = nullptr;  // never null; borrowed
  const ResultSet* golden = nullptr;      // null: there is none, golden_missing says why; borrowed
  std::string golden_missing;             // one line
  const ResultSet* actual = nullptr;      // never null; borrowed
  // Runs the engine again where tokens or texts part; borrowed. Null: cannot be done, no_rerun says why in one line.
  Rerun* rerun = nullptr;
  std::string no_rerun = "no engine to run again";
  const Provenance* provenance = nullptr;  // of `actual`; borrowed; null: not known
};

// Always an answer; whatever is wrong is its verdict. A token or text that differs is DIVERGED, unless a rerun on the
// golden's tokens shows that near-ties alone explain it (core/compare/near_tie.h): then it is EQUIVALENT, and logprobs,
// top-n and routing are judged over the whole golden on the rerun. A known completion's text stays DIVERGED. The
// findings of the core's own checks (request ids, prompts, NaN and infinities, known-completion sources) stand under
// the metric name kRequestsMetric and come first.
CaseVerdict judge_case(const JudgeInput& input);
inline constexpr std::string_view kRequestsMetric = "requests";

// Reads both files and judges. A golden that does not exist is NOT_COMPARABLE; any other file that cannot be read, and
// a missing `actual`, are INVALID with the reader's line as reason.
CaseVerdict compare_files(const std::string& golden, const std::string& actual, const JudgeOptions& options);

}  // namespace assay::compare
