// The last steps and the sums of a norm (backends/reference/operators.h) on the device.
#pragma once

#include "backends/cuda/kernels/device_math.cuh"
#include "backends/cuda/kernels/elementwise.h"

namespace assay::cuda {

// v: column i, scaled.
__device__ inline float normalised(const NormArgs& a, float v, int i) {
  return a.beta == nullptr ? v * a.gamma[i] : __fmaf_rn(v, a.gamma[i], a.beta[i]);
}

// The dot over `width` columns by one warp, its halves taking blocks of 256 in turn: step(k, acc) is fma of column k.
// The sum is in all threads.
template <class Step>
__device__ inline float warp_dot(int width, const Step& step) {
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  const int half = static_cast<int>(threadIdx.x) % 32 / kLanes;
  float total = 0;
  for (int block = 0; block < width; block += 2 * kBlock) {
    const int begin = block + half * kBlock;
    float acc = 0;
#pragma unroll
    for (int i = 0; i < kBlock / kLanes; ++i) {
      const int k = begin + i * kLanes + lane;
      if (k < width) acc = step(k, acc);
    }
    total = total + __shfl_sync(kWholeWarp, acc, lane);
    if (block + kBlock < width) total = total + __shfl_sync(kWholeWarp, acc, lane + kLanes);
  }
  return __shfl_sync(kWholeWarp, tree_sum(total), 0, kLanes);
}

// Norm of one token to bf16 by one warp; x: (width), y: whole tiles.
__device__ inline void normalise_by_warp(const NormArgs& a, const float* x, Bfloat16* y) {
  const auto n = static_cast<float>(a.width);
  float mean = 0;
  if (a.centred) mean = warp_dot(a.width, [&](int k, float acc) { return __fmaf_rn(1.0f, x[k], acc); }) / n;
  const auto value = [&](int k) { return a.centred ? x[k] - mean : x[k]; };
  const float square = warp_dot(a.width, [&](int k, float acc) { return __fmaf_rn(value(k), value(k), acc); }) / n;
  const float scale = 1.0f / sqrtf(square + a.epsilon);
  const int padded = round_up(a.width, kTile);
#pragma unroll 8
  for (int i = static_cast<int>(threadIdx.x) % 32 * 2; i < padded; i += 64) {
    const float first = i < a.width ? normalised(a, value(i) * scale, i) : 0.0f;
    const float second = i + 1 < a.width ? normalised(a, value(i + 1) * scale, i + 1) : 0.0f;
    const uint32_t low = arithmetic::to_bf16(first);
    const uint32_t high = arithmetic::to_bf16(second);
    *reinterpret_cast<uint32_t*>(y + i) = low | high << 16;
  }
}

}  // namespace assay::cuda
