// Which version of a linear layer is used when.
#pragma once

#include <span>

#include "backends/cuda/kernels/linear_job.h"

namespace assay::cuda {

// The fastest version that there is for the arguments and the device: the same bits, whatever is chosen.
void linear_any(const LinearArgs& args, cudaStream_t stream);

// MLPs that do not depend on one another, activations included: in two launches where that can be (and one more to sort
// the inputs of experts that have many). Else one after the other, and then first.linear.y is written too, so that jobs
// may share it. What lies in first.activate.y and in `sorted` afterwards is nobody's.
void linear_mlps(std::span<const MlpJob> jobs, cudaStream_t stream);

}  // namespace assay::cuda
