// The activations (elementary.h) on the device.
#pragma once

#include "backends/cuda/kernels/device_math.cuh"
#include "backends/model/config/model_config.h"

namespace assay::cuda {

// up: kSwiglu alone uses it.
__device__ inline float activated(model::Activation activation, float v, float up) {
  switch (activation) {
    case model::Activation::kSwiglu:
      return arithmetic::silu<DeviceSingle>(v) * up;
    case model::Activation::kSquaredRelu:
      return arithmetic::squared_relu<DeviceSingle>(v);
    case model::Activation::kGeluErf:
      return arithmetic::gelu_erf<DeviceSingle>(v);
    default:
      return arithmetic::gelu_tanh<DeviceSingle>(v);
  }
}

}  // namespace assay::cuda
