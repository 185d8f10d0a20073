// Attention in bf16 models for bundles of several tokens (prompts) on wgmma: the bits of attend(). Machine code of
// compute capability 9.0 alone.
#pragma once

#include "backends/cuda/kernels/attention.h"

namespace assay::cuda {

// Whether attend_hopper() takes these arguments on the calling thread's device: compute capability 9.0, a bf16 cache of
// 64 or 128 channels, tokens in bundles.
bool hopper_attends(const AttendArgs& args);

// The bundles of at least `least` tokens; needs no splits. Keys and values are read once a head and bundle.
void attend_hopper(const AttendArgs& args, int least, cudaStream_t stream);

}  // namespace assay::cuda
