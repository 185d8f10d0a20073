// The verdict of Megatron-LM's comparator for inference results (tests/functional_tests/python_test_utils/
// test_inference_regular_pipeline.py), holes included. Works on the raw JSON with Python's semantics and shares nothing
// with our own comparators. Pure functions, safe from any thread.
#pragma once

#include <string_view>

#include "assay/compat.h"

namespace assay::compat {

using Metrics = CompatMetrics;

// `golden` and `actual`: the bytes of the two files. `lightweight`: ENABLE_LIGHTWEIGHT_MODE is "true".
// Never fails: input that Python refuses is a verdict kFailed.
CompatVerdict judge_inference(std::string_view golden, std::string_view actual, const Metrics& metrics,
                              bool lightweight = false);

}  // namespace assay::compat
