// The definitions of the fast kernels, spelled out: one warp a result, everything one after the other. For tests.
#pragma once

#include "backends/cuda/fast/step.h"

namespace assay::cuda::fast {

// y = weight * a. a: (tokens, k) bf16 in operand order; weight: (rows, k) bf16 tiles.
void plain_linear(const void* a, const void* weight, int rows, int k, int tokens, float* y, cudaStream_t stream);

// The same as decode_step, without its last kernel. `scratch`: (tokens) of 3 * kHidden + topk * (2 * width + kHidden)
// + 3 * shared_width floats.
void plain_step(const StepArgs& args, float* scratch, cudaStream_t stream);

}  // namespace assay::cuda::fast
