#include "backends/cuda/kernels/device_math.cuh"
#include "backends/cuda/kernels/linear.h"
#include "backends/cuda/kernels/linear_result.cuh"
#include "backends/cuda/kernels/tensor_core.cuh"
#include "backends/cuda/runtime/error.h"

namespace assay::cuda {
namespace {

constexpr int kThreads = 128;
constexpr int kWarps = kThreads / 32;
constexpr int kSegmentTiles = kBlock / kTile;
constexpr int kHalfWarps = kThreads / kLanes;
constexpr int kRows = 4;  // of a half-warp, fp32

// One warp: 16 rows, up to 8 tokens.
__global__ void __launch_bounds__(kThreads) tensor_kernel(LinearArgs a, Groups groups) {
  const int row_tile = static_cast<int>(blockIdx.x) * kWarps + static_cast<int>(threadIdx.x) / 32;
  const TokenTile tile = token_tile(groups, a.tokens, static_cast<int>(blockIdx.y));
  if (row_tile * kTile >= a.weight.rows || tile.count == 0) return;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int group = lane / 4;
  const int pair = lane % 4;
  const int k_tiles = (a.weight.cols + kTile - 1) / kTile;
  const auto* matrix = static_cast<const uint8_t*>(a.weight.data) + tile.expert * a.weight.bytes();
  const uint4* w = reinterpret_cast<const uint4*>(matrix) + int64_t{row_tile} * k_tiles * 32 + lane;
  const uint32_t* x = nullptr;  // of token `group` of the tile, two columns each
  if (group < tile.count) {
    const int64_t row = token_of(groups, tile, group) / a.x_divisor;
    x = reinterpret_cast<const uint32_t*>(static_cast<const Bfloat16*>(a.x.data) + row * a.x.stride) + pair;
  }
  float total[4] = {};
  for (int segment = 0; segment < k_tiles; segment += kSegmentTiles) {
    float acc[4] = {};
    const int end = min(segment + kSegmentTiles, k_tiles);
    for (int k = segment; k < end; ++k) {
      const uint32_t b0 = x != nullptr ? x[k * 8] : 0u;
      const uint32_t b1 = x != nullptr ? x[k * 8 + 4] : 0u;
      mma(acc, w[int64_t{k} * 32], b0, b1);
    }
    for (int i = 0; i < 4; ++i) total[i] = total[i] + acc[i];
  }
  for (int i = 0; i < 4; ++i) {
    const int row = tiled_row(a.weight, row_tile, group + i / 2 * 8);
    const int column = pair * 2 + i % 2;
    if (row >= a.weight.rows || column >= tile.count) continue;
    write_result(a, tile.expert, row, token_of(groups, tile, column), total[i]);
  }
}

// Sixteen threads, one a lane of the dot: 4 rows, up to 8 tokens.
template <class Stored>
__global__ void __launch_bounds__(kThreads) lanes_kernel(LinearArgs a, Groups groups) {
  const TokenTile tile = token_tile(groups, a.tokens, static_cast<int>(blockIdx.y));
  if (tile.count == 0) return;
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  const int first = (static_cast<int>(blockIdx.x) * kHalfWarps + static_cast<int>(threadIdx.x) / kLanes) * kRows;
  const auto* matrix = static_cast<const Stored*>(a.weight.data) + tile.expert * int64_t{a.weight.rows} * a.weight.cols;
  const float* x[kTileTokens];
  for (int t = 0; t < kTileTokens; ++t) {
    const int token = t < tile.count ? token_of(groups, tile, t) : token_of(groups, tile, 0);
    x[t] = static_cast<const float*>(a.x.data) + int64_t{token / a.x_divisor} * a.x.stride;
  }
  float total[kRows][kTileTokens] = {};
  for (int block = 0; block < a.weight.cols; block += kBlock) {
    float acc[kRows][kTileTokens] = {};
    const int end = min(block + kBlock, a.weight.cols);
    for (int k = block + lane; k < end; k += kLanes) {
      float w[kRows];
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        w[r] = first + r < a.weight.rows ? widen(matrix[int64_t{first + r} * a.weight.cols + k]) : 0.0f;
      }
#pragma unroll
      for (int t = 0; t < kTileTokens; ++t) {
        if (t >= tile.count) break;
        const float value = x[t][k];
#pragma unroll
        for (int r = 0; r < kRows; ++r) acc[r][t] = __fmaf_rn(w[r], value, acc[r][t]);
      }
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
#pragma unroll
      for (int t = 0; t < kTileTokens; ++t) total[r][t] = total[r][t] + acc[r][t];
    }
  }
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
#pragma unroll
    for (int t = 0; t < kTileTokens; ++t) {
      const float y = tree_sum(total[r][t]);
      if (lane != 0 || first + r >= a.weight.rows || t >= tile.count) continue;
      write_result(a, tile.expert, first + r, token_of(groups, tile, t), y);
    }
  }
}

}  // namespace

void linear(const LinearArgs& args, cudaStream_t stream) {
  if (args.tokens == 0) return;
  const Groups groups = args.groups == nullptr ? Groups{} : *args.groups;
  const int tiles = args.groups == nullptr ? (args.tokens + kTileTokens - 1) / kTileTokens : groups.most_tiles;
  LinearArgs a = args;
  a.groups = nullptr;  // host memory
  const int rows_a_block = args.x.bf16 ? kWarps * kTile : kHalfWarps * kRows;
  const dim3 grid(static_cast<unsigned>((args.weight.rows + rows_a_block - 1) / rows_a_block),
                  static_cast<unsigned>(tiles));
  if (args.x.bf16) {
    tensor_kernel<<<grid, kThreads, 0, stream>>>(a, groups);
  } else if (args.weight.number == Number::kFloat32) {
    lanes_kernel<float><<<grid, kThreads, 0, stream>>>(a, groups);
  } else if (args.weight.number == Number::kBfloat16) {
    lanes_kernel<Bfloat16><<<grid, kThreads, 0, stream>>>(a, groups);
  } else {
    lanes_kernel<__half><<<grid, kThreads, 0, stream>>>(a, groups);
  }
  check_launch("linear");
}

}  // namespace assay::cuda
