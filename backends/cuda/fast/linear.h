// Dense linear layers of a decode step, up to 8 tokens. K is kHidden.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cuda/fast/launch.h"
#include "backends/cuda/fast/shapes.h"

namespace assay::cuda::fast {

// y = weight * bf16(norm(x)).
struct NormLinearArgs {
  const float* x = nullptr;      // (tokens, kHidden) fp32
  const float* gamma = nullptr;  // (kHidden)
  float eps = 0;
  const void* weight = nullptr;  // (rows, kHidden) bf16 tiles
  int rows = 0;
  int tokens = 0;
  float* y = nullptr;           // (tokens, rows) fp32
  uint32_t* cleared = nullptr;  // set to 0 by the kernel; or null
  constexpr size_t bytes() const { return static_cast<size_t>(rows) * kHidden * 2; }
};
cudaError_t norm_linear(const NormLinearArgs& args, const Launch& how);

// x += weight * a.
struct LinearResidualArgs {
  const void* a = nullptr;       // (tokens, kHidden) bf16, operand order
  const void* weight = nullptr;  // (rows, kHidden) bf16 tiles
  int rows = 0;
  int tokens = 0;
  float* x = nullptr;  // (tokens, rows) fp32
  constexpr size_t bytes() const { return static_cast<size_t>(rows) * kHidden * 2; }
};
cudaError_t linear_residual(const LinearResidualArgs& args, const Launch& how);

}  // namespace assay::cuda::fast
