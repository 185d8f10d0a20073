#include <cuda_fp16.h>

#include "backends/cuda/random_weights.h"
#include "backends/cuda/runtime/error.h"
#include "backends/reference/arithmetic/formats.h"

namespace assay::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kMostBlocks = 132 * 32;
constexpr int kTileLanes = 32;

unsigned blocks_for(int64_t threads) {
  const int64_t blocks = (threads + kThreads - 1) / kThreads;
  return static_cast<unsigned>(blocks < kMostBlocks ? blocks : kMostBlocks);
}

__device__ int64_t first_index() { return int64_t{blockIdx.x} * kThreads + threadIdx.x; }
__device__ int64_t index_step() { return int64_t{gridDim.x} * kThreads; }

// One thread a lane's 16 bytes of a tile.
__global__ void __launch_bounds__(kThreads) tiles_kernel(RandomMatrices a) {
  const Matrix& m = a.first;
  const int64_t row_tiles = (m.rows + kTile - 1) / kTile;
  const int64_t column_tiles = (m.cols + kTile - 1) / kTile;
  const int64_t all = a.count * row_tiles * column_tiles * kTileLanes;
  auto* to = static_cast<uint4*>(const_cast<void*>(m.data));
  for (int64_t i = first_index(); i < all; i += index_step()) {
    const int lane = static_cast<int>(i % kTileLanes);
    const int64_t tile = i / kTileLanes;
    const int column = static_cast<int>(tile % column_tiles) * kTile;
    const int64_t row_tile = tile / column_tiles;
    const int64_t matrix = row_tile / row_tiles;
    uint32_t words[4];
    for (int word = 0; word < 4; ++word) {
      const int row = tiled_row(m, static_cast<int>(row_tile % row_tiles), lane / 4 + word % 2 * 8);
      words[word] = 0;
      for (int half = 0; half < 2; ++half) {
        const int col = column + lane % 4 * 2 + word / 2 * 8 + half;
        if (row >= m.rows || col >= m.cols) continue;
        const auto index = static_cast<uint64_t>((matrix * m.rows + row) * m.cols + col);
        const uint32_t bits = arithmetic::to_bf16(a.scale * random_number(a.seed, a.stream, index));
        words[word] |= bits << (16 * half);
      }
    }
    to[i] = make_uint4(words[0], words[1], words[2], words[3]);
  }
}

__global__ void __launch_bounds__(kThreads) rows_kernel(RandomMatrices a) {
  const int64_t all = a.count * a.first.rows * a.first.cols;
  void* to = const_cast<void*>(a.first.data);
  for (int64_t i = first_index(); i < all; i += index_step()) {
    const float value = a.scale * random_number(a.seed, a.stream, static_cast<uint64_t>(i));
    switch (a.first.number) {
      case Number::kFloat32:
        static_cast<float*>(to)[i] = value;
        break;
      case Number::kBfloat16:
        static_cast<uint16_t*>(to)[i] = arithmetic::to_bf16(value);
        break;
      default:
        static_cast<__half*>(to)[i] = __float2half_rn(value);
    }
  }
}

__global__ void __launch_bounds__(kThreads) vector_kernel(RandomVector a) {
  for (int64_t i = first_index(); i < a.count; i += index_step()) {
    const float value = a.middle + a.scale * random_number(a.seed, a.stream, static_cast<uint64_t>(i));
    a.to[i] = (a.rounded ? arithmetic::round_bf16(value) : value) + a.added;
  }
}

}  // namespace

void fill_random(const RandomMatrices& args, cudaStream_t stream) {
  const Matrix& m = args.first;
  if (m.data == nullptr || args.count == 0) return;
  if (m.tiled) {
    const int64_t tiles = int64_t{round_up(m.rows, kTile) / kTile} * (round_up(m.cols, kTile) / kTile);
    tiles_kernel<<<blocks_for(args.count * tiles * kTileLanes), kThreads, 0, stream>>>(args);
  } else {
    rows_kernel<<<blocks_for(args.count * m.rows * m.cols), kThreads, 0, stream>>>(args);
  }
  check_launch("fill_random");
}

void fill_random(const RandomVector& args, cudaStream_t stream) {
  if (args.to == nullptr || args.count == 0) return;
  vector_kernel<<<blocks_for(args.count), kThreads, 0, stream>>>(args);
  check_launch("fill_random");
}

}  // namespace assay::cuda
