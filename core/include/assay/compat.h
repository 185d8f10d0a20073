// What another project's own comparator says of the same results, told beside our verdict.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

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

// METRICS of model_config.yaml as PyYAML reads it: what can be told apart by a comparator that looks names up in it.
struct CompatMetrics {
  enum class Form : uint8_t {
    kMissing,  // no such key
    kFalsy,    // null, "", [], {}, 0, false: nothing is compared and all passes
    kList,
    kMapping,
    kText,    // a name is "in" it when it is part of it
    kScalar,  // a number, true or a date: a name cannot be looked for in it
  };
  Form form = Form::kMissing;
  std::vector<std::string> names = {};  // kList: entries that are texts; kMapping: keys
  std::string text = {};                // kText
};

// "passed", "failed", "skipped".
constexpr const char* to_string(CompatVerdict::Outcome outcome) {
  return outcome == CompatVerdict::kPassed ? "passed" : outcome == CompatVerdict::kSkipped ? "skipped" : "failed";
}

}  // namespace assay
