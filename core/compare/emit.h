// What comparators share: options and findings. Used by the comparator plugins.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "assay/plugin_abi.h"
#include "assay/status.h"

namespace assay::compare {

// Member "tolerance" of the options object, or `otherwise` where it has none.
// Fails with kInvalid: not an object, another member, not a number >= 0.
Result<double> tolerance_option(assay_str options, double otherwise);

// Fails with kInvalid when the options object has any member.
Status no_options(assay_str options, std::string_view metric);

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
