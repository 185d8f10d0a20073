// Linear layers of bf16 arithmetic for few tokens (decode): the bits of linear(), the segments of K side by side.
#pragma once

#include "backends/cuda/kernels/linear.h"

namespace assay::cuda {

// Tensor cores only: x is bf16, the matrix tiled. Moves the weights once per kTileTokens tokens of an expert.
void linear_few(const LinearArgs& args, cudaStream_t stream);

}  // namespace assay::cuda
