// Attention in bf16 models for single tokens of many sequences at the speed of memory: the bits of attend().
#pragma once

#include "backends/cuda/kernels/attention.h"

namespace assay::cuda {

// Whether attend_few() takes these arguments: a bf16 cache of 64 or 128 channels, at most 16 query heads a group.
bool can_attend_few(const AttendArgs& args);

// The bundles of one token; without bundles every token. `splits`: as attend_bf16() with `most` of 1. Moves the keys
// and values of every sequence once: 4 * channels bytes a group and position.
void attend_few(const AttendArgs& args, cudaStream_t stream);

}  // namespace assay::cuda
