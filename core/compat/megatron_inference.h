// The verdict of Megatron-LM's comparator for inference results (tests/functional_tests/python_test_utils/
// test_inference_regular_pipeline.py), holes included. Works on the raw JSON with Python's semantics and shares nothing
// with our own comparators. Pure functions, safe from any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "assay/compat.h"

namespace assay::compat {

// METRICS of model_config.yaml as PyYAML reads it: what can be told apart by the comparator.
struct Metrics {
  enum class Form : uint8_t {
    kMissing,  // no such key
    kFalsy,    // null, "", [], {}, 0, false: nothing is compared and all passes
    kList,
    kMapping,
    kText,    // a name is "in" it when it is part of it
    kScalar,  // a number, true or a date: a name cannot be looked for in it
  };
  Form form = Form::kMissing;
  std::vector<std::string> names;  // kList: entries that are texts; kMapping: keys
  std::string text;                // kText
};

// `golden` and `actual`: the bytes of the two files. `lightweight`: ENABLE_LIGHTWEIGHT_MODE is "true".
// Never fails: input that Python refuses is a verdict kFailed.
CompatVerdict judge_inference(std::string_view golden, std::string_view actual, const Metrics& metrics,
                              bool lightweight = false);

}  // namespace assay::compat
