// Linear layers of bf16 arithmetic for any number of tokens on wgmma: the bits of linear(). Machine code of compute
// capability 9.0 alone.
#pragma once

#include <span>

#include "backends/cuda/kernels/linear_job.h"

namespace assay::cuda {

inline constexpr int kMostJobs = 2;  // of one launch

// Whether linear_hopper() takes these jobs on the calling thread's device: compute capability 9.0, tiled matrices, and
// activations of gated ones without a bias only, of a width that is a multiple of 16.
bool hopper_takes(std::span<const LinearJob> jobs);

// All jobs in one launch. 2 * rows * cols * tokens flops each; moves the weights once per 128 tokens of an expert.
void linear_hopper(std::span<const LinearJob> jobs, cudaStream_t stream);

}  // namespace assay::cuda
