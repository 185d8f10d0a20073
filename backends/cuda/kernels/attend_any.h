// Attention: the fastest version for given arguments. All give the same bits.
#pragma once

#include "backends/cuda/kernels/attention.h"

namespace assay::cuda {

// Floats of scratch (AttendArgs::splits) that attend_any() needs for these arguments, of which it looks at everything
// but the numbers.
size_t attend_floats(const AttendArgs& args);

void attend_any(const AttendArgs& args, cudaStream_t stream);

}  // namespace assay::cuda
