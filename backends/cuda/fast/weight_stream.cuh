// How a warp streams tiled weights (kernels/types.h) through shared memory and multiplies them.
//
// A unit is one segment (256 of K) of one row tile: 16 tiles, 8 KB of consecutive memory, less at the end of K. Every
// warp has a ring of its own, filled by bulk copies that its first lane asks for, and goes through its own units.
#pragma once

#include "backends/cuda/fast/launch.h"
#include "backends/cuda/fast/ptx.cuh"
#include "backends/cuda/fast/shapes.h"
#include "backends/cuda/kernels/types.h"

namespace assay::cuda::fast {

constexpr int kStageTiles = 4;  // tiles a stage
constexpr int kStages = 4;      // a unit
constexpr int kStageBytes = kStageTiles * 512;
constexpr int kUnitBytes = kStages * kStageBytes;

__host__ __device__ constexpr int segments(int k) { return (k + kSegment - 1) / kSegment; }

// Where a unit starts; null: nothing to read.
struct Unit {
  const char* tiles = nullptr;
  int count = 0;  // tiles: 16, 12, 8, 4
};

// Segment `segment` of row tile `row_tile` of a tiled matrix with `k` columns (a multiple of 64).
__device__ inline Unit unit_of(const void* matrix, int row_tile, int segment, int k) {
  const int first = segment * (kSegment / 16);
  return {static_cast<const char*>(matrix) + (static_cast<size_t>(row_tile) * (k / 16) + first) * 512,
          min(kSegment / 16, k / 16 - first)};
}

// Four tiles times the operand of the same 64 k: two 16-byte pieces of it (see operand_place).
__device__ inline void multiply(float (&sum)[4], const uint4 (&tiles)[kStageTiles], const uint4& low,
                                const uint4& high) {
  mma(sum, tiles[0], low.x, low.y);
  mma(sum, tiles[1], low.z, low.w);
  mma(sum, tiles[2], high.x, high.y);
  mma(sum, tiles[3], high.z, high.w);
}

// Three half units a warp, 96 KB a block: two blocks of kernels that follow one another fit a multiprocessor. While
// half h is used, half h + 3 is requested into its place. Locate: Unit(int n), the warp's n-th unit, called once per
// unit and in order; no tiles: nothing is read.
class WeightRing {
 public:
  static constexpr int kHalves = 3;
  static constexpr int kHalfBytes = kUnitBytes / 2;
  static constexpr int kHalfTiles = kSegment / 32;
  static constexpr int kBytes = (kHalves * kHalfBytes + 128) * kWarps;  // of a block

  // memory: kBytes, at a multiple of 128.
  __device__ explicit WeightRing(char* memory)
      : ring_(shared_address(memory) + threadIdx.x / 32 * (kBytes / kWarps)), policy_(evict_first()) {
    if (threadIdx.x % 32 == 0) {
      for (int i = 0; i < kHalves; ++i) barrier_init(barrier(i));
      barrier_publish();
    }
    __syncwarp();
  }

  // Requests the first unit and a half.
  template <class Locate>
  __device__ void fill(const Locate& locate) {
    at_ = locate(0);
    request(0, 0);
    request(1, 1);
    at_ = locate(1);
    request(0, 2);
  }

  // After units that were not there when their turn came (no tiles): requests unit n and half of the next.
  template <class Locate>
  __device__ void refill(int n, const Locate& locate) {
#pragma unroll
    for (int half = 0; half < kHalves; ++half) {
      if (half % 2 == 0) at_ = locate(n + half / 2);
      barrier_wait(barrier(oldest_), parity_);  // ends at once
      __syncwarp();
      request(half % 2, oldest_);
      advance();
    }
  }

  // sum += unit n times x; the first `tiles` tiles of it count.
  template <class Locate>
  __device__ void multiply_unit(int n, const Locate& locate, const uint4 (&x)[2 * kStages], float (&sum)[4],
                                int tiles = kSegment / 16) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      barrier_wait(barrier(oldest_), parity_);
      const uint32_t from = ring_ + oldest_ * kHalfBytes + threadIdx.x % 32 * 16;
#pragma unroll
      for (int stage = 2 * half; stage < 2 * half + 2; ++stage) {
        uint4 tile[kStageTiles];
#pragma unroll
        for (int i = 0; i < kStageTiles; ++i) tile[i] = load_shared(from + stage % 2 * kStageBytes + i * 512);
        if (stage * kStageTiles < tiles) multiply(sum, tile, x[2 * stage], x[2 * stage + 1]);
      }
      if (half == 1) at_ = locate(n + 2);
      __syncwarp();  // all lanes have read the half
      request(1 - half, oldest_);
      advance();
    }
  }

 private:
  __device__ void advance() {
    if (++oldest_ == kHalves) {
      oldest_ = 0;
      parity_ ^= 1;
    }
  }
  __device__ uint32_t barrier(int place) const { return ring_ + kHalves * kHalfBytes + place * 8; }
  // Half `half` of the unit that is being requested, into place `place`.
  __device__ void request(int half, int place) {
    if (threadIdx.x % 32 == 0) {
      const uint32_t bytes = 512 * max(0, min(kHalfTiles, at_.count - half * kHalfTiles));
      barrier_expect(barrier(place), bytes);
      if (bytes > 0) {
        copy_bulk(ring_ + place * kHalfBytes, at_.tiles + half * kHalfBytes, bytes, barrier(place), policy_);
      }
    }
  }

  uint32_t ring_;
  uint64_t policy_;
  Unit at_;  // being requested
  int oldest_ = 0;
  uint32_t parity_ = 0;
};

// Operand order: vectors that are multiplied by weights keep each 32 of K so that the lane with lane%4 == c finds its
// part of the B operand of two mma's as 16 bytes at 8 c. Place of element k.
__host__ __device__ constexpr int operand_place(int k) {
  return k / 32 * 32 + (k % 8 / 2) * 8 + (k / 16 % 2) * 4 + (k / 8 % 2) * 2 + k % 2;
}

// Column `k` of row `row` of a tiled matrix with kHidden columns (kernels/types.h).
__device__ inline float embedded(const void* matrix, int row, int k) {
  const auto* numbers = static_cast<const bf16*>(matrix);
  return __bfloat162float(numbers[tiled_index(row, k, kHidden)]);
}

// Partial sums of a unit, (16 rows, kColumns), from the lanes that hold a column < columns.
template <int kColumns>
__device__ inline void store_partial(float* to, const float (&sum)[4]) {
  const int g = threadIdx.x % 32 / 4;
  const int c = threadIdx.x % 4;
  if constexpr (kColumns == 1) {
    if (c == 0) {
      to[g] = sum[0];
      to[g + 8] = sum[2];
    }
  } else {
    static_assert(kColumns == 8);
    *reinterpret_cast<float2*>(to + g * 8 + 2 * c) = make_float2(sum[0], sum[1]);
    *reinterpret_cast<float2*>(to + (g + 8) * 8 + 2 * c) = make_float2(sum[2], sum[3]);
  }
}

// Ascending sum over the `count` segments of one element; partials are 16 * kColumns floats apart.
template <int kColumns>
__device__ inline float sum_segments(const float* first, int count) {
  float total = 0.0f;
#pragma unroll 8
  for (int i = 0; i < count; ++i) total = __fadd_rn(total, first[i * 16 * kColumns]);
  return total;
}

}  // namespace assay::cuda::fast
