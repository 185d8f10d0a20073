// How far recorded results are from a golden, metric by metric, and what to make of it: what a person needs to see
// before accepting them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "assay/case.h"
#include "assay/golden.h"
#include "assay/provenance.h"
#include "assay/verdict.h"
#include "core/compare/judge.h"

namespace assay::govern {

// What to make of a difference, ascending in gravity.
enum class Proposal {
  kSame,   // nothing differs that judges
  kNew,    // the golden lacks it
  kNoise,  // within tolerance
  kTie,    // tokens part at near-ties
  kDrift,  // numbers beyond tolerance
  kWrong,  // rounding cannot explain it, or it breaks a rule (NaN, another prompt, not the known completion)
};
std::string_view to_string(Proposal proposal);  // "same", "new", "noise", "tie", "drift", "wrong"

struct MetricDrift {
  std::string metric;
  bool listed = false;   // METRICS names it
  bool changed = false;  // there is something to accept: it differs, or belongs to tokens that do
  Proposal proposal = Proposal::kSame;
  Verdict verdict = Verdict::kIdentical;  // that the recorded values would get from the golden
  uint64_t compared = 0;
  uint64_t differing = 0;
  double max_abs_difference = 0;          // in the metric's unit
  double smallest_passing_tolerance = 0;  // the same
  std::string message = {};               // of the worst finding
};

// A text before and after, around the first code point that differs.
struct TextChange {
  std::string request;
  int64_t token = -1;       // first divergent generated token; -1: not known
  std::string before = {};  // printable, "|" where they part; empty: the golden has none
  std::string after = {};
};

struct Drift {
  std::string golden;  // file that was compared with; empty: there is none
  Proposal proposal = Proposal::kSame;
  CaseVerdict verdict;  // of METRICS and all that both sides hold
  std::vector<MetricDrift> metrics;
  std::vector<TextChange> texts;         // requests in order
  std::vector<std::string> environment;  // provenance_differences
  bool changed() const;
};

// kUnsupported for a case that relations judge (ASSAY.metamorphic): it has no golden to record, measure or accept.
Status check_has_golden(const TestCase& test);

// What a case says about judging; `lookup` is copied. Fails with kNotFound when a source of ASSAY.known_completion
// cannot be found, and like check_has_golden.
Result<compare::JudgeOptions> judge_options(const TestCase& test, const compare::ComparatorLookup& lookup);

struct DriftInput {
  const compare::JudgeOptions* options = nullptr;  // of the case; never null
  const ResultSet* golden = nullptr;               // null: none
  const ResultSet* recorded = nullptr;             // never null
  const Provenance* provenance = nullptr;          // of `recorded`; null: not known
};

// Judges METRICS and, besides, every metric whose values both sides hold (performance metrics only where METRICS names
// them). Values that METRICS asks for and the golden lacks are kNew; values nobody asks for are not looked at. Without
// a golden the recorded values are judged by themselves, so that those which break a rule are kWrong.
Drift drift_of(const DriftInput& input);

// Whether results could ever pass as a golden of the case: judged by themselves they are not INVALID (no request, an
// empty text or token list ...); what a known completion must say is check_known_completion's. kInvalid says what is
// wrong.
Status check_can_judge(const compare::JudgeOptions& options, const ResultSet& set);

}  // namespace assay::govern
