// Products of weights and values where a query must not meet every value.
#pragma once

#include "backends/cuda/kernels/hopper/attention_tiles.cuh"
#include "backends/cuda/kernels/tensor_core.cuh"

namespace assay::cuda::hopper_attention {

// What a thread has of its warp's 16 queries where some of them must not meet the values of 16 positions: 0 times
// infinity is not 0. In memory, and out of line, since it hardly ever happens.
template <int kChannels>
struct RowByRow {
  uint32_t values;  // in shared memory
  int begin;        // the first position
  int position[2];  // of the thread's two rows
  uint4 high;
  uint4 low;
  float sums[kChannels / 2];
};

// Adds the weighted values to the sums, a row at a time.
template <int kChannels>
__device__ __noinline__ void multiply_rows(RowByRow<kChannels>& w) {
  const int g = static_cast<int>(threadIdx.x) % 32 / 4;
  const int c = static_cast<int>(threadIdx.x) % 4;
  for (int n = 0; n < kChannels / 8; ++n) {
    const auto value = [&](int i) -> uint32_t {
      const uint32_t place = static_cast<uint32_t>(8 * n + g) * 2;
      const uint32_t at = place / kLine * kHalfTile + swizzled(static_cast<uint32_t>(2 * c + i), place % kLine);
      uint16_t v;
      asm volatile("ld.shared.u16 %0, [%1];" : "=h"(v) : "r"(w.values + at) : "memory");
      return v;
    };
    const uint32_t b0 = value(0) | value(1) << 16;
    const uint32_t b1 = value(8) | value(9) << 16;
    float* sum = w.sums + 4 * n;
    for (int r = 0; r < 16; ++r) {
      const int last = __shfl_sync(kWholeWarp, w.position[r / 8], r % 8 * 4) - w.begin;
      const auto seen = [&](uint32_t two, int i) {
        return (i <= last ? two & 0xffffu : 0) | (i + 1 <= last ? two & 0xffff0000u : 0);
      };
      const auto only = [&](const uint4& p) {
        return make_uint4(g == r ? p.x : 0, g + 8 == r ? p.y : 0, g == r ? p.z : 0, g + 8 == r ? p.w : 0);
      };
      float its[4] = {sum[0], sum[1], sum[2], sum[3]};
      mma(its, only(w.high), seen(b0, 2 * c), seen(b1, 2 * c + 8));
      mma(its, only(w.low), seen(b0, 2 * c), seen(b1, 2 * c + 8));
      for (int i = 0; i < 4; ++i) sum[i] = g + i / 2 * 8 == r ? its[i] : sum[i];
    }
  }
}

}  // namespace assay::cuda::hopper_attention
