// What comparators share: options and findings. Used by the comparator plugins.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "assay/plugin_abi.h"
#include "assay/status.h"

namespace assay::compare {

// Noise of the metric as the golden records it; a member that is not recorded is nullopt.
struct NoiseOption {
  std::optional<double> max;       // the metric's unit, >= 0
  std::optional<double> p99;       // the metric's unit, >= 0
  std::optional<double> relative;  // >= 0
};

// assay_judgement.options, see there. What is not known is nullopt or empty.
struct ComparatorOptions {
  std::optional<double> tolerance;  // ASSAY.tolerance of the metric, >= 0
  NoiseOption noise;
  std::string dtype;            // of the logits: "fp32", "fp16", "bf16"
  std::optional<double> logit;  // largest magnitude of a logit, >= 0
  std::vector<std::string> sources;
};

// JSON schema of the options, for the descriptors of comparators.
inline constexpr char kOptionsSchema[] =
    R"({"type": "object", "additionalProperties": false, "properties": {)"
    R"("tolerance": {"type": "number", "minimum": 0}, "noise": {"type": "object", "additionalProperties": false, )"
    R"("properties": {"max": {"type": "number", "minimum": 0}, "p99": {"type": "number", "minimum": 0}, )"
    R"("relative": {"type": "number", "minimum": 0}}}, "dtype": {"enum": ["fp32", "fp16", "bf16"]}, )"
    R"("logit": {"type": "number", "minimum": 0}, "sources": {"type": "array", "items": {"type": "string"}}}})";

// Members of later hosts are left alone. Fails with kInvalid and one line: not a JSON object, a value of the wrong
// type, a number that is negative or not finite, another dtype. Every comparator accepts every documented member.
Result<ComparatorOptions> parse_options(assay_str options);

// Fails with kInvalid when a tolerance is given to a metric that is exact.
Status refuse_tolerance(const ComparatorOptions& options, std::string_view metric);

struct Observation {
  uint32_t kind = ASSAY_FINDING_NOTE;  // assay_finding_kind
  assay_str id = {};                   // empty: the whole case
  int64_t index = -1;
  uint64_t compared = 0;
  uint64_t differing = 0;
  double max_abs_difference = 0;
  double smallest_passing_tolerance = 0;
  std::string message = {};
};

// Hands the observation to the sink.
void emit(const assay_sink& sink, const Observation& observation);

// Emits MISSING and returns true when a side lacks the field (`bit` of ASSAY_HAS_*).
bool emit_missing(const assay_sink& sink, const assay_pair& pair, uint32_t bit, std::string_view field);

}  // namespace assay::compare
