// Which version of a linear layer is used when.
#pragma once

#include "backends/cuda/kernels/linear.h"

namespace assay::cuda {

// linear_few or linear_many for bf16 arithmetic, linear for fp32: the same bits, whatever is chosen.
void linear_any(const LinearArgs& args, cudaStream_t stream);

}  // namespace assay::cuda
