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

// The two layers of an MLP, or of the MLPs of experts; second.x is first.activate.y.
struct MlpJob {
  LinearJob first = {};
  LinearArgs second = {};
  Inputs sorted = {};  // room for the inputs of as many slots as there are, of first.linear.x's stride; data null: none
};

}  // namespace assay::cuda
