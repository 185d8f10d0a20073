#include "backends/cuda/kernels/device_math.cuh"
#include "backends/cuda/kernels/linear_many.h"
#include "backends/cuda/kernels/linear_result.cuh"
#include "backends/cuda/kernels/tensor_core.cuh"
#include "backends/cuda/runtime/error.h"

namespace assay::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kRowTiles = 8;    // of 16 rows, a block
constexpr int kChunkTiles = 4;  // of 16 columns, a stage
constexpr int kStages = 4;
constexpr int kSegmentChunks = kBlock / (kTile * kChunkTiles);
constexpr int kTileBytes = kTile * kTile * 2;
constexpr int kWeightBytes = kRowTiles * kChunkTiles * kTileBytes;          // of a stage: 16 KB
constexpr int kRowBytes = kChunkTiles * kTile * 2;                          // of a token in a stage: 128
constexpr int kStageBytes = kWeightBytes + kManyTokens * kRowBytes;         // 24 KB
constexpr int kPieces = 16;                                                 // bytes of one asynchronous copy
constexpr int kWeightCopies = kWeightBytes / kPieces / kThreads;            // a thread and stage: 4
constexpr int kTokenCopies = kManyTokens * kRowBytes / kPieces / kThreads;  // a thread and stage: 2

__device__ uint32_t shared_address(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

// 16 bytes to shared memory, zeros where `real` is false.
__device__ void copy_async(uint32_t to, const void* from, bool real) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(real ? kPieces : 0)
               : "memory");
}

// Up to kManyTokens tokens of one expert; count 0: nothing to do. Every warp finds it for itself.
__device__ TokenTile many_tile(const Groups& groups, int tokens, int index) {
  if (groups.order == nullptr) {
    const int begin = index * kManyTokens;
    return {0, begin, min(kManyTokens, tokens - begin)};
  }
  const int lane = static_cast<int>(threadIdx.x) % 32;
  for (int first = 0; first < groups.experts; first += 32) {  // 32 experts at a time
    const int e = first + lane;
    const int begin = e < groups.experts ? groups.begin[e] : 0;
    const int count = e < groups.experts ? groups.begin[e + 1] - begin : 0;
    const int tiles = (count + kManyTokens - 1) / kManyTokens;
    int behind = tiles;  // tiles of the experts up to this one
    for (int step = 1; step < 32; step *= 2) {
      const int other = __shfl_up_sync(kWholeWarp, behind, step);
      behind += lane >= step ? other : 0;
    }
    const unsigned found = __ballot_sync(kWholeWarp, index < behind);
    if (found != 0) {
      const int owner = __ffs(static_cast<int>(found)) - 1;
      const int place = __shfl_sync(kWholeWarp, (index - (behind - tiles)) * kManyTokens, owner);
      return {first + owner, __shfl_sync(kWholeWarp, begin, owner) + place,
              min(kManyTokens, __shfl_sync(kWholeWarp, count, owner) - place)};
    }
    index -= __shfl_sync(kWholeWarp, behind, 31);
  }
  return {0, 0, 0};
}

// What one thread copies.
class Copier {
 public:
  __device__ Copier(const LinearArgs& a, const Groups& groups, const TokenTile& tile, uint32_t stages)
      : k_tiles_((a.weight.cols + kTile - 1) / kTile),
        row_tiles_((a.weight.rows + kTile - 1) / kTile),
        stages_(stages) {
    const int thread = static_cast<int>(threadIdx.x);
    weights_ = static_cast<const uint8_t*>(a.weight.data) + tile.expert * a.weight.bytes();
#pragma unroll
    for (int i = 0; i < kTokenCopies; ++i) {
      const int token = thread / 8 + i * (kThreads / 8);
      const int64_t row = token < tile.count ? token_of(groups, tile, token) / a.x_divisor : 0;
      x_[i] = token < tile.count ? static_cast<const uint8_t*>(a.x.data) + (row * a.x.stride) * 2 : nullptr;
    }
  }

  // Requests chunk `chunk` of K; behind its end: zeros that nothing reads.
  __device__ void request(int chunk) const {
    const int thread = static_cast<int>(threadIdx.x);
    const uint32_t stage = stages_ + static_cast<uint32_t>(chunk % kStages * kStageBytes);
#pragma unroll
    for (int i = 0; i < kWeightCopies; ++i) {  // (row tile, column tile, lane)
      const int piece = thread + i * kThreads;
      const int row_tile = static_cast<int>(blockIdx.x) * kRowTiles + piece / (kChunkTiles * 32);
      const int k_tile = chunk * kChunkTiles + piece / 32 % kChunkTiles;
      const bool real = row_tile < row_tiles_ && k_tile < k_tiles_;
      const int64_t tile = real ? int64_t{row_tile} * k_tiles_ + k_tile : 0;
      copy_async(stage + static_cast<uint32_t>(piece * kPieces), weights_ + tile * kTileBytes + piece % 32 * kPieces,
                 real);
    }
#pragma unroll
    for (int i = 0; i < kTokenCopies; ++i) {  // (token, eight columns), pieces swizzled against bank conflicts
      const int token = thread / 8 + i * (kThreads / 8);
      const int piece = thread % 8;
      const bool real = x_[i] != nullptr && chunk * kChunkTiles + piece / 2 < k_tiles_;
      const uint8_t* from = real ? x_[i] + chunk * kRowBytes + piece * kPieces : weights_;
      copy_async(stage + static_cast<uint32_t>(kWeightBytes + token * kRowBytes + (piece ^ token % 8) * kPieces), from,
                 real);
    }
  }

 private:
  int k_tiles_;
  int row_tiles_;
  uint32_t stages_;
  const uint8_t* weights_;
  const uint8_t* x_[kTokenCopies];
};

// Eight warps: four times 32 rows, twice 32 tokens. A warp has 2 x 4 results of mma.
__global__ void __launch_bounds__(kThreads, 2) many_kernel(LinearArgs a, Groups groups) {
  extern __shared__ __align__(128) uint8_t stages[];
  const TokenTile tile = many_tile(groups, a.tokens, static_cast<int>(blockIdx.y));
  if (tile.count <= 0) return;
  const Copier copier(a, groups, tile, shared_address(stages));
  const int chunks = ((a.weight.cols + kTile - 1) / kTile + kChunkTiles - 1) / kChunkTiles;
  for (int c = 0; c < kStages - 1; ++c) {
    if (c < chunks) copier.request(c);
    asm volatile("cp.async.commit_group;" ::: "memory");
  }
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int first_row_tile = warp / 2 * 2;
  const int first_token = warp % 2 * 32;
  // Of ldmatrix: matrices 0 and 1 are the halves of K for eight tokens, 2 and 3 for the next eight.
  const int matrix_token = first_token + lane / 16 * 8 + lane % 8;
  const int matrix_half = lane / 8 % 2;
  const int k_tiles = (a.weight.cols + kTile - 1) / kTile;
  float total[2][4][4] = {};
  float acc[2][4][4] = {};
  for (int chunk = 0; chunk < chunks; ++chunk) {
    asm volatile("cp.async.wait_group %0;" ::"n"(kStages - 2) : "memory");
    __syncthreads();
    if (chunk + kStages - 1 < chunks) copier.request(chunk + kStages - 1);
    asm volatile("cp.async.commit_group;" ::: "memory");
    const uint8_t* stage = stages + chunk % kStages * kStageBytes;
    const uint32_t x = shared_address(stage + kWeightBytes);
#pragma unroll
    for (int k = 0; k < kChunkTiles; ++k) {
      if (chunk * kChunkTiles + k >= k_tiles) break;
      uint4 w[2];
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        w[r] =
            *reinterpret_cast<const uint4*>(stage + ((first_row_tile + r) * kChunkTiles + k) * kTileBytes + lane * 16);
      }
#pragma unroll
      for (int pair = 0; pair < 2; ++pair) {
        const int token = matrix_token + pair * 16;
        const int piece = (k * 2 + matrix_half) ^ token % 8;
        uint32_t b[4];
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(b[0]), "=r"(b[1]), "=r"(b[2]), "=r"(b[3])
                     : "r"(x + static_cast<uint32_t>(token * kRowBytes + piece * kPieces))
                     : "memory");
#pragma unroll
        for (int r = 0; r < 2; ++r) {
          mma(acc[r][pair * 2], w[r], b[0], b[1]);
          mma(acc[r][pair * 2 + 1], w[r], b[2], b[3]);
        }
      }
    }
    if ((chunk + 1) % kSegmentChunks != 0 && chunk + 1 != chunks) continue;
#pragma unroll
    for (int i = 0; i < 32; ++i) {
      float& sum = total[i / 16][i / 4 % 4][i % 4];
      float& part = acc[i / 16][i / 4 % 4][i % 4];
      sum = sum + part;
      part = 0;
    }
  }
#pragma unroll
  for (int i = 0; i < 32; ++i) {
    const int row_tile = static_cast<int>(blockIdx.x) * kRowTiles + first_row_tile + i / 16;
    const int row = tiled_row(a.weight, row_tile, lane / 4 + i % 4 / 2 * 8);
    const int column = first_token + i / 4 % 4 * 8 + lane % 4 * 2 + i % 2;
    const bool inside = a.weight.gated ? row_tile * kTile < a.weight.rows : row < a.weight.rows;
    if (!inside || column >= tile.count) continue;
    write_result(a, tile.expert, row, token_of(groups, tile, column), total[i / 16][i / 4 % 4][i % 4]);
  }
}

}  // namespace

void linear_many(const LinearArgs& args, cudaStream_t stream) {
  if (args.tokens == 0) return;
  const Groups groups = args.groups == nullptr ? Groups{} : *args.groups;
  LinearArgs a = args;
  a.groups = nullptr;  // host memory
  int tiles = (args.tokens + kManyTokens - 1) / kManyTokens;
  if (args.groups != nullptr) {
    tiles = args.tokens / kManyTokens + (args.tokens < groups.experts ? args.tokens : groups.experts);
  }
  constexpr int kSharedBytes = kStages * kStageBytes;
  check(cudaFuncSetAttribute(many_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes), "linear_many");
  const int rows = kRowTiles * kTile;
  const dim3 grid(static_cast<unsigned>((args.weight.rows + rows - 1) / rows), static_cast<unsigned>(tiles));
  many_kernel<<<grid, kThreads, kSharedBytes, stream>>>(a, groups);
  check_launch("linear_many");
}

}  // namespace assay::cuda
