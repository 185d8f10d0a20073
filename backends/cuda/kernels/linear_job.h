// A linear layer and the activation of its results.
#pragma once

#include "backends/cuda/kernels/elementwise.h"
#include "backends/cuda/kernels/linear.h"

namespace assay::cuda {

// activate.y.data null: no activation. Else its `fc1` is linear.y, which may be left unwritten: only activate.y counts.
struct LinearJob {
  LinearArgs linear = {};
  ActivateArgs activate = {};
};

}  // namespace assay::cuda
