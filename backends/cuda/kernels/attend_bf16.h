// Attention in bf16 models for any number of channels, heads, positions and tokens a bundle: what the version
// for prompts is held to. Arithmetic: attention_bf16.cuh.
#pragma once

#include "backends/cuda/kernels/attention.h"

namespace assay::cuda {

// The bundles of at most `most` tokens (1 .. kBundle); without bundles every token stands alone. `splits` holds results
// of every token from `first`; where `most` is 1, of every bundle. Reads keys and values once a group and 16 query
// heads.
void attend_bf16(const AttendArgs& args, int most, cudaStream_t stream);

// Its second half: puts the results in `splits` together, for tokens of more than one split.
void combine_bf16(const AttendArgs& args, int most, cudaStream_t stream);

}  // namespace assay::cuda
