// What follows the dot of a linear layer.
#pragma once

#include "backends/cuda/kernels/device_math.cuh"
#include "backends/cuda/kernels/linear.h"

namespace assay::cuda {

// The result of row `row` of expert `expert`, below weight.rows, for `token` (or slot), before `onto`.
__device__ inline float result_of(const LinearArgs& a, int expert, int row, int token, float dot) {
  float result = dot;
  if (a.bias != nullptr) {
    const float bias = a.bias[int64_t{expert} * a.weight.rows + row];
    result = result + (a.bias_factor != nullptr ? bias * a.bias_factor[token] : bias);
  }
  return a.rounded ? arithmetic::round_bf16(result) : result;
}

__device__ inline void write_result(const LinearArgs& a, int expert, int row, int token, float dot) {
  const float result = result_of(a, expert, row, token, dot);
  float* y = a.y + int64_t{token} * a.y_stride + row;
  *y = a.onto ? *y + result : result;
}

}  // namespace assay::cuda
