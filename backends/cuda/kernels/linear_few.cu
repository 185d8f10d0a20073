#include "backends/cuda/kernels/device_math.cuh"
#include "backends/cuda/kernels/linear_few.h"
#include "backends/cuda/kernels/linear_result.cuh"
#include "backends/cuda/kernels/tensor_core.cuh"
#include "backends/cuda/runtime/error.h"

namespace assay::cuda {
namespace {

constexpr int kMostWarps = 8;
constexpr int kSegmentTiles = kBlock / kTile;

// One block: 16 rows, up to 8 tokens. Warp w takes the segments w, w + warps ...; their sums (segments, 32 lanes, 4)
// meet in shared memory.
__global__ void __launch_bounds__(kMostWarps * 32) few_kernel(LinearArgs a, Groups groups) {
  extern __shared__ float4 sums[];
  const int row_tile = static_cast<int>(blockIdx.x);
  const TokenTile tile = token_tile(groups, a.tokens, static_cast<int>(blockIdx.y));
  if (tile.count == 0) return;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int warps = static_cast<int>(blockDim.x) / 32;
  const int group = lane / 4;
  const int pair = lane % 4;
  const int k_tiles = (a.weight.cols + kTile - 1) / kTile;
  const int segments = (k_tiles + kSegmentTiles - 1) / kSegmentTiles;
  const auto* matrix = static_cast<const uint8_t*>(a.weight.data) + tile.expert * a.weight.bytes();
  const uint4* w = reinterpret_cast<const uint4*>(matrix) + int64_t{row_tile} * k_tiles * 32 + lane;
  // Of token `group` of the tile (the first in place of one that is not there), two columns each.
  const int64_t row = token_of(groups, tile, group < tile.count ? group : 0) / a.x_divisor;
  const auto* x = reinterpret_cast<const uint32_t*>(static_cast<const Bfloat16*>(a.x.data) + row * a.x.stride) + pair;
  for (int segment = warp; segment < segments; segment += warps) {
    const int first = segment * kSegmentTiles;
    const int tiles = min(kSegmentTiles, k_tiles - first);
    uint4 held[kSegmentTiles];
    uint32_t b[kSegmentTiles][2];
#pragma unroll
    for (int k = 0; k < kSegmentTiles; ++k) held[k] = load_ahead(w + int64_t{first + (k < tiles ? k : 0)} * 32);
#pragma unroll
    for (int k = 0; k < kSegmentTiles; ++k) {
      const uint32_t* at = x + (first + (k < tiles ? k : 0)) * 8;
      b[k][0] = load_ahead(at);
      b[k][1] = load_ahead(at + 4);
    }
    float acc[4] = {};
    if (tiles == kSegmentTiles) {
#pragma unroll
      for (int k = 0; k < kSegmentTiles; ++k) mma(acc, held[k], b[k][0], b[k][1]);
    } else {
#pragma unroll
      for (int k = 0; k < kSegmentTiles - 1; ++k) {
        if (k < tiles) mma(acc, held[k], b[k][0], b[k][1]);
      }
    }
    sums[segment * 32 + lane] = make_float4(acc[0], acc[1], acc[2], acc[3]);
  }
  __syncthreads();
  if (warp != 0) return;
  float total[4] = {};
  for (int segment = 0; segment < segments; ++segment) {
    const float4 part = sums[segment * 32 + lane];
    total[0] = total[0] + part.x;
    total[1] = total[1] + part.y;
    total[2] = total[2] + part.z;
    total[3] = total[3] + part.w;
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int row = tiled_row(a.weight, row_tile, group + i / 2 * 8);
    const int column = pair * 2 + i % 2;
    if (row >= a.weight.rows || column >= tile.count) continue;
    write_result(a, tile.expert, row, token_of(groups, tile, column), total[i]);
  }
}

}  // namespace

void linear_few(const LinearArgs& args, cudaStream_t stream) {
  if (args.tokens == 0) return;
  const Groups groups = args.groups == nullptr ? Groups{} : *args.groups;
  const int tiles = args.groups == nullptr ? (args.tokens + kTileTokens - 1) / kTileTokens : groups.most_tiles;
  LinearArgs a = args;
  a.groups = nullptr;  // host memory
  const int segments = (args.weight.cols + kBlock - 1) / kBlock;
  const auto warps = static_cast<unsigned>(segments < kMostWarps ? segments : kMostWarps);
  const auto shared = static_cast<size_t>(segments) * 32 * sizeof(float4);
  constexpr size_t kMostShared = size_t{48} << 10;
  if (shared > kMostShared) return linear(args, stream);  // K beyond 24,576
  const dim3 grid(static_cast<unsigned>((args.weight.rows + kTile - 1) / kTile), static_cast<unsigned>(tiles));
  few_kernel<<<grid, warps * 32, shared, stream>>>(a, groups);
  check_launch("linear_few");
}

}  // namespace assay::cuda
