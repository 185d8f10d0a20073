// Which version of a linear layer is used when.
#pragma once

#include <span>

#include "backends/cuda/kernels/linear_job.h"

namespace assay::cuda {

// The fastest version that there is for the arguments and the device: the same bits, whatever is chosen.
void linear_any(const LinearArgs& args, cudaStream_t stream);

// The same for several layers that do not depend on one another, activations included: one launch where that can be.
// Else one after the other, and linear.y is written also where only the activation counts, so that jobs with
// activations may share it.
void linear_jobs(std::span<const LinearJob> jobs, cudaStream_t stream);

}  // namespace assay::cuda
