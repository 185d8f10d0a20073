// Attention of many queries of a sequence (prefill): the bits of attend(), keys and values read once for 32 queries.
#pragma once

#include "backends/cuda/kernels/attention.h"

namespace assay::cuda {

// Whether attend_many can do it: a bf16 cache with 64 or 128 channels.
bool can_attend_many(const AttendArgs& args);
void attend_many(const AttendArgs& args, cudaStream_t stream);

// The faster of the versions for these arguments: attend_many where it can and bundles hold several tokens, else
// attend.
void attend_any(const AttendArgs& args, cudaStream_t stream);

}  // namespace assay::cuda
