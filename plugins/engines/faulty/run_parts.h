// A run of a forward in two.
#pragma once

#include <cstdint>
#include <utility>

#include "assay/plugin_abi.h"

namespace assay::engines {

// The parts of `run` before and from its token `border` on, 0 <= border < count, as two runs that write into the same
// outputs. Outputs belong to the last rows: those of the head are of its own last ones.
std::pair<assay_run, assay_run> split(const assay_run& run, uint32_t border, const assay_model_info& info);

}  // namespace assay::engines
