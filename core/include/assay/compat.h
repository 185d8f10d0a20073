// What another project's own comparator says of the same results, told beside our verdict.
#pragma once

#include <cstdint>
#include <string>

namespace assay {

// Plain data. It never changes a verdict or an exit code of ours.
struct CompatVerdict {
  enum Outcome : uint8_t {
    kPassed,
    kFailed,
    kSkipped,  // it refused to compare and counts that as success
  };
  Outcome outcome = kFailed;
  std::string message;  // one line: why; of a failure, the kind of the exception comes first ("KeyError: ...")

  bool passes() const { return outcome != kFailed; }
};

// "passed", "failed", "skipped".
constexpr const char* to_string(CompatVerdict::Outcome outcome) {
  return outcome == CompatVerdict::kPassed ? "passed" : outcome == CompatVerdict::kSkipped ? "skipped" : "failed";
}

}  // namespace assay
