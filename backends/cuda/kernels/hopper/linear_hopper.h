// Linear layers of bf16 arithmetic for any number of tokens on wgmma: the bits of linear(). Machine code of compute
// capability 9.0 alone.
#pragma once

#include <span>

#include "backends/cuda/kernels/linear_job.h"

namespace assay::cuda {

inline constexpr int kMostJobs = 2;  // of one launch

// With groups, rows of vectors may lie as `order` has them, an expert's together, instead of by slot.
struct HopperJob {
  LinearJob job = {};
  bool sorted_x = false;      // linear.x; linear.x_divisor does not matter then
  bool sorted_inner = false;  // activate.y
  // The groups were there before the kernel before this one began, and that one has read them: they are read early.
  bool old_groups = false;
};

// Whether linear_hopper() takes these jobs on the calling thread's device: compute capability 9.0, tiled matrices, and
// activations of gated ones without a bias only, of a width that is a multiple of 16.
bool hopper_takes(std::span<const LinearJob> jobs);

// All jobs in one launch. Weights are read early, before the kernel before this one has ended, so no kernel may write
// them.
//  2 * rows * cols * tokens flops each; moves the weights once per 128 tokens of an expert.
// `together`: blocks that share what they read, 1, 2 or 4; 0: as many as pay. More than one only where all vectors of
// an expert lie together.
void linear_hopper(std::span<const HopperJob> jobs, cudaStream_t stream, int together = 0);

// y[i] = x[order[i] / divisor]: the inputs of `slots` slots sorted. Reads and writes every row once.
struct SortRowsArgs {
  Inputs x = {};  // bf16, of whole tiles
  int divisor = 1;
  const int32_t* order = nullptr;  // (slots)
  int slots = 0;
  Inputs y = {};  // of x's stride
};
void sort_rows(const SortRowsArgs& args, cudaStream_t stream);

}  // namespace assay::cuda
