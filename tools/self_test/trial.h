// One fault at one place: what was seen of it and what that means.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "assay/verdict.h"
#include "tools/self_test/fault_list.h"

namespace assay::self_test {

enum class Fate : uint8_t {
  kKilled,    // a verdict that fits
  kEscaped,   // the case passed
  kMisnamed,  // the case failed with a verdict that does not fit
  kNoEffect,  // the engine planted nothing, or the result is that of the correct engine
  kNotRun,    // nobody could say
};
std::string_view to_string(Fate fate);

// What a run tells of a trial.
struct Observation {
  Verdict verdict = Verdict::kInfra;
  std::string place;            // where the engine says that it planted the fault; empty: it says nothing
  bool same_as_golden = false;  // the result equals the golden in all that is no time
  bool shows_in_result = true;  // faults of this family change results: an equal one means no effect
};

// In this order: INFRA and SKIPPED are kNotRun; no place is kNoEffect; a verdict that passes is kEscaped, or kNoEffect
// where the result is the golden; a verdict outside of the fault's is kMisnamed; all else is kKilled.
Fate fate_of(const FaultRow& fault, const Observation& seen);

struct Trial {
  std::string fault;
  uint64_t seed = 0;
  Fate fate = Fate::kNotRun;
  Verdict verdict = Verdict::kInfra;
  std::string place;
  std::string reason;     // of the verdict, one line
  std::string reproduce;  // one command
};

// The first "planted FAULT: where" of a log; "" where there is none.
std::string place_in_log(const std::string& log, const std::string& fault);

// What a result file says, without times: equal texts, equal results. "" when it cannot be read.
std::string content_of(const std::string& path);

// True when the file says `content`, which is not empty.
bool same_results(const std::string& path, const std::string& content);

}  // namespace assay::self_test
