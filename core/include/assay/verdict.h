// The verdict lattice: one type for every comparator, report and exit code. Nothing missing ever passes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "assay/compat.h"
#include "assay/evidence.h"

namespace assay {

// In ascending severity from kIdentical on: the verdict of a whole is the largest of its parts.
enum class Verdict : uint8_t {
  kSkipped,        // something in ASSAY.requires is absent, or nothing was to be compared; counted apart
  kIdentical,      // every compared value equal
  kEquivalent,     // within tolerance, or near-ties alone
  kXfail,          // fails as declared
  kWaived,         // fails under a waiver that has not expired
  kXpass,          // passes although declared to fail
  kDrift,          // numbers beyond tolerance
  kDiverged,       // a token or text differs
  kFlaky,          // repeats disagree
  kNotComparable,  // capability or golden missing, METRICS empty
  kInvalid,        // bad case, golden or result
  kInfra,          // device, driver, launcher, node or disk failed before or around the engine
  kCrashed,        // the engine died, hung or exhausted memory while a request ran
};

// Upper-case name as printed and as stored, e.g. "NOT_COMPARABLE".
std::string_view to_string(Verdict verdict);
std::optional<Verdict> parse_verdict(std::string_view name);

// True for kIdentical, kEquivalent, kXfail and kWaived; with `strict`, kEquivalent does not pass.
bool passes(Verdict verdict, bool strict = false);

// The more severe of two.
Verdict worst(Verdict a, Verdict b);

// One observation of a comparator, mirrored from assay_finding.
struct Finding {
  Verdict verdict = Verdict::kInvalid;
  bool note = false;    // reported only, does not judge
  std::string request;  // empty: the whole case
  int64_t index = -1;   // first position concerned; -1: none
  uint64_t compared = 0;
  uint64_t differing = 0;
  double max_abs_difference = 0;
  double smallest_passing_tolerance = 0;
  std::string message;
};

struct MetricVerdict {
  std::string metric;
  Verdict verdict = Verdict::kNotComparable;
  std::vector<Finding> findings;
};

// The judged case. `reason` is one line: the first thing a person should read.
struct CaseVerdict {
  Verdict verdict = Verdict::kNotComparable;
  std::string reason;
  std::string golden;  // path of the file that judged; empty: none
  std::vector<MetricVerdict> metrics;
  std::vector<RequestEvidence> evidence = {};  // of requests that are not IDENTICAL, at most kMaxEvidenceRequests
  std::vector<std::string> environment = {};   // differences to the golden's provenance, a line each
  std::string declared = {};           // what a waiver or expectation has to do with the verdict, one line; empty: none
  std::optional<Verdict> judged = {};  // the verdict before that
  std::optional<CompatVerdict> compat = {};  // of Megatron-LM's comparator, where it was asked for
};
inline constexpr size_t kMaxEvidenceRequests = 16;

// True when the case declares a waiver and passes without it.
bool has_unused_waiver(const CaseVerdict& verdict);

// True when the other comparator lets pass what we do not, or the other way round.
bool disagrees(const CaseVerdict& verdict, bool strict = false);

// "assay: DIVERGED · megatron: passes (generated_text, prefix rule)"; "" without a verdict of the other comparator.
std::string compat_line(const CaseVerdict& verdict);

// Exit code of a set of verdicts (DESIGN 8): 0 all passed, 1 a verdict failed, 3 infrastructure only, 4 nothing ran.
int exit_code(const std::vector<Verdict>& verdicts, bool strict = false);

}  // namespace assay
