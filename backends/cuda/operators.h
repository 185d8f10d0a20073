// The operators that have more than one version. Every version gives the same bits, but for those of prefill=fast
// (fast_operators.h).
#pragma once

#include <functional>

#include "backends/cuda/kernels/attend_any.h"
#include "backends/cuda/kernels/linear_any.h"

namespace assay::cuda {

struct Operators {
  std::function<void(const LinearArgs& args, cudaStream_t stream)> linear = linear_any;
  std::function<void(std::span<const MlpJob> jobs, cudaStream_t stream)> mlps = linear_mlps;
  std::function<void(const AttendArgs& args, cudaStream_t stream)> attend = attend_any;
};

}  // namespace assay::cuda
