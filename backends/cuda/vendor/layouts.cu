#include "backends/cuda/kernels/device_math.cuh"
#include "backends/cuda/runtime/error.h"
#include "backends/cuda/vendor/layouts.h"

namespace assay::cuda::vendor {
namespace {

constexpr int kThreads = 256;
constexpr unsigned kMostBlocks = 65535;

unsigned blocks_for(int64_t items) {
  const int64_t blocks = (items + kThreads - 1) / kThreads;
  return static_cast<unsigned>(blocks < kMostBlocks ? blocks : kMostBlocks);
}

__device__ int64_t first_item() { return int64_t{blockIdx.x} * kThreads + threadIdx.x; }
__device__ int64_t all_threads() { return int64_t{gridDim.x} * kThreads; }

// A thread: one lane's eight numbers of a tile.
__global__ void untile_kernel(Matrix m, uint32_t* to) {
  const int col_tiles = (m.cols + kTile - 1) / kTile;
  const int row_tiles = (m.rows + kTile - 1) / kTile;
  const int64_t lanes = int64_t{row_tiles} * col_tiles * 32;
  for (int64_t i = first_item(); i < lanes; i += all_threads()) {
    const uint4 bits = static_cast<const uint4*>(m.data)[i];
    const uint32_t pairs[4] = {bits.x, bits.y, bits.z, bits.w};
    const int lane = static_cast<int>(i % 32);
    const auto tile = static_cast<int>(i / 32 / col_tiles);
    const auto col = static_cast<int>(i / 32 % col_tiles) * kTile + lane % 4 * 2;
#pragma unroll
    for (int pair = 0; pair < 4; ++pair) {
      const int row = tiled_row(m, tile, lane / 4 + pair % 2 * 8);
      if (row < m.rows) to[(int64_t{row} * col_tiles * kTile + col + pair / 2 * 8) / 2] = pairs[pair];
    }
  }
}

__global__ void finish_kernel(FinishArgs a) {
  const int64_t all = int64_t{a.tokens} * a.rows;
  for (int64_t i = first_item(); i < all; i += all_threads()) {
    const auto row = static_cast<int>(i % a.rows);
    float* const y = a.y + i / a.rows * a.stride + row;
    const float sum = a.bias != nullptr ? *y + a.bias[row] : *y;
    *y = a.rounded ? arithmetic::round_bf16(sum) : sum;
  }
}

// Two neighbouring channels a thread.
__global__ void gather_queries_kernel(const uint32_t* queries, int64_t count, int64_t all, uint32_t* to) {
  for (int64_t i = first_item(); i < all; i += all_threads()) to[i] = i < count ? queries[i] : 0u;
}

// Eight neighbouring channels of a key or value a thread; blockIdx.y: keys or values.
__global__ void gather_cache_kernel(CacheView cache, Tokens tokens, int layer, RunPlace run, DenseHeads dense) {
  const int parts = cache.channels / 8;
  const int64_t all = int64_t{cache.groups} * dense.keys * parts;
  const auto* from = static_cast<const uint4*>(blockIdx.y == 0 ? cache.keys : cache.values);
  auto* to = static_cast<uint4*>(blockIdx.y == 0 ? dense.k : dense.v);
  const int32_t* table = tokens.blocks + tokens.table[run.first];
  for (int64_t i = first_item(); i < all; i += all_threads()) {
    const auto part = static_cast<int>(i % parts);
    const auto position = static_cast<int>(i / parts % dense.keys);
    const auto group = static_cast<int>(i / parts / dense.keys);
    if (position >= run.start + run.count) {
      to[i] = uint4{0, 0, 0, 0};
      continue;
    }
    const int64_t block = int64_t{layer} * cache.block_count + table[position / cache.block_size];
    const int64_t vector = (block * cache.groups + group) * cache.block_size + position % cache.block_size;
    to[i] = from[vector * parts + part];
  }
}

// Two neighbouring numbers a thread.
__global__ void scatter_kernel(const uint32_t* from, Inputs y, int first, int64_t count, int width) {
  const int pairs = width / 2;
  for (int64_t i = first_item(); i < count * pairs; i += all_threads()) {
    const int64_t row = first + i / pairs;
    static_cast<uint32_t*>(y.data)[row * (y.stride / 2) + i % pairs] = from[i];
  }
}

}  // namespace

void untile(const Matrix& matrix, void* to, cudaStream_t stream) {
  if (matrix.rows == 0 || matrix.cols == 0) return;
  untile_kernel<<<blocks_for(matrix.bytes() / 16), kThreads, 0, stream>>>(matrix, static_cast<uint32_t*>(to));
  check_launch("untile");
}

void finish_rows(const FinishArgs& args, cudaStream_t stream) {
  if (args.tokens == 0) return;
  finish_kernel<<<blocks_for(int64_t{args.tokens} * args.rows), kThreads, 0, stream>>>(args);
  check_launch("finish_rows");
}

void gather_heads(const AttendArgs& args, const RunPlace& run, const DenseHeads& dense, cudaStream_t stream) {
  const int64_t width = int64_t{args.cache.groups} * args.per_group * args.cache.channels;
  const int64_t all = dense.queries * width / 2;
  if (dense.q != nullptr) {
    gather_queries_kernel<<<blocks_for(all), kThreads, 0, stream>>>(
        static_cast<const uint32_t*>(args.queries) + run.first * width / 2, run.count * width / 2, all,
        static_cast<uint32_t*>(dense.q));
    check_launch("gather_queries");
  }
  const int64_t vectors = int64_t{args.cache.groups} * dense.keys * args.cache.channels / 8;
  gather_cache_kernel<<<dim3(blocks_for(vectors), 2), kThreads, 0, stream>>>(args.cache, args.tokens, args.layer, run,
                                                                             dense);
  check_launch("gather_cache");
}

void scatter_rows(const AttendArgs& args, const RunPlace& run, const void* from, cudaStream_t stream) {
  const int width = args.cache.groups * args.per_group * args.cache.channels;
  scatter_kernel<<<blocks_for(int64_t{run.count} * width / 2), kThreads, 0, stream>>>(
      static_cast<const uint32_t*>(from), args.y, run.first, run.count, width);
  check_launch("scatter_rows");
}

}  // namespace assay::cuda::vendor
