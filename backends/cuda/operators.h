// The operators that have more than one version. Every version gives the same bits.
#pragma once

#include "backends/cuda/kernels/attend_any.h"
#include "backends/cuda/kernels/linear_any.h"

namespace assay::cuda {

struct Operators {
  void (*linear)(const LinearArgs& args, cudaStream_t stream) = linear_any;
  void (*attend)(const AttendArgs& args, cudaStream_t stream) = attend_any;
};

}  // namespace assay::cuda
