// A decode step by the plain kernels of backends/cuda/kernels, and by attention_math.cuh spelled out: what the fast
// kernels are compared with, bit for bit. For tests.
#pragma once

#include "backends/cuda/fast/step.h"

namespace assay::cuda::fast {

// The definition of attention: one warp a query head, everything one after the other. Ignores results and tickets; y
// is (tokens, heads, kHeadSize) bf16 in natural order.
void plain_attention(const AttentionArgs& args, cudaStream_t stream);

// As decode_step without `advance`. Waits; throws CudaError.
void plain_step(const StepArgs& args, cudaStream_t stream);

}  // namespace assay::cuda::fast
