// Linear layers of bf16 arithmetic for many tokens (prefill): the bits of linear(), each weight read once per 64
// tokens.
#pragma once

#include "backends/cuda/kernels/linear.h"

namespace assay::cuda {

inline constexpr int kManyTokens = 64;  // tokens of one tile

// Tensor cores only: x is bf16, the matrix tiled. 2 * rows * cols * tokens flops; moves the weights once per
// kManyTokens tokens of an expert.
void linear_many(const LinearArgs& args, cudaStream_t stream);

}  // namespace assay::cuda
