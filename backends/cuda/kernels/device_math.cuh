// What device code needs of the arithmetic: one float as backends/reference/arithmetic wants it, and stored numbers.
#pragma once

#include <cuda_fp16.h>

#include "backends/cuda/kernels/types.h"
#include "backends/reference/arithmetic/dot.h"
#include "backends/reference/arithmetic/elementary.h"
#include "backends/reference/arithmetic/formats.h"

namespace assay::cuda {

inline constexpr unsigned kWholeWarp = 0xffffffffu;
inline constexpr int kLanes = static_cast<int>(arithmetic::kLanes);  // of a dot
inline constexpr int kBlock = static_cast<int>(arithmetic::kBlock);  // columns of a dot's block

// arithmetic::Single on the device: its constexpr operations, and the fused multiply-add that is none.
struct DeviceSingle : arithmetic::Single {
  static __host__ __device__ float fma(float a, float b, float c) { return ::fmaf(a, b, c); }
};

__device__ inline float exponential(float x) { return arithmetic::exponential<DeviceSingle>(x); }

// Stored forms: bf16 as its bits, so that the arithmetic is formats.h's.
struct Bfloat16 {
  uint16_t bits;
};

__device__ inline float widen(float v) { return v; }
__device__ inline float widen(Bfloat16 v) { return __uint_as_float(static_cast<uint32_t>(v.bits) << 16); }
__device__ inline float widen(__half v) { return __half2float(v); }
__device__ inline void store(float* to, float v) { *to = v; }
__device__ inline void store(Bfloat16* to, float v) { to->bits = arithmetic::to_bf16(v); }

// Element (row, col) as fp32.
__device__ inline float element(const Matrix& m, int row, int col) {
  const int64_t i = m.tiled ? tiled_index(row, col, m.cols) : int64_t{row} * m.cols + col;
  switch (m.number) {
    case Number::kFloat32:
      return static_cast<const float*>(m.data)[i];
    case Number::kBfloat16:
      return widen(static_cast<const Bfloat16*>(m.data)[i]);
    default:
      return widen(static_cast<const __half*>(m.data)[i]);
  }
}

// The tree of a dot over 16 neighbouring threads (a half-warp; every thread of the warp calls): the sum is in the first
// of them.
__device__ inline float tree_sum(float lane) {
  for (int width = kLanes / 2; width > 0; width /= 2) {
    lane = lane + __shfl_down_sync(kWholeWarp, lane, static_cast<unsigned>(width), kLanes);
  }
  return lane;
}

// The dot of `count` columns by one half-warp (every thread of the warp calls, with the same count): step(k, acc) is
// fma of column k. The sum is in all 16 threads.
template <class Step>
__device__ inline float half_warp_dot(int count, const Step& step) {
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  float total = 0;
  for (int block = 0; block < count; block += kBlock) {
    float acc = 0;
    for (int k = block + lane; k < block + kBlock && k < count; k += kLanes) acc = step(k, acc);
    total = total + acc;
  }
  return __shfl_sync(kWholeWarp, tree_sum(total), 0, kLanes);
}

// Which tokens of a linear layer's tile: those of `order` (null: in their own order) from `begin`.
struct TokenTile {
  int expert;
  int begin;
  int count;  // 0: nothing to do
};

__device__ inline TokenTile token_tile(const Groups& groups, int tokens, int index) {
  if (groups.order == nullptr) {
    const int begin = index * kTileTokens;
    return {0, begin, min(kTileTokens, tokens - begin)};
  }
  if (index >= *groups.tiles) return {0, 0, 0};
  return {groups.tile_expert[index], groups.tile_begin[index], groups.tile_count[index]};
}

__device__ inline int token_of(const Groups& groups, const TokenTile& tile, int i) {
  return groups.order == nullptr ? tile.begin + i : groups.order[tile.begin + i];
}

}  // namespace assay::cuda
