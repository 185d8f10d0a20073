#include "backends/cuda/fast/linear.h"
#include "backends/cuda/fast/norm.cuh"

namespace assay::cuda::fast {
namespace {

constexpr int kBlocks = 132;  // one a multiprocessor
template <int kColumns>
constexpr int kRoundTiles = kColumns == 1 ? 16 : 4;  // row tiles between two barriers

template <int kColumns>
constexpr int kPartialFloats = kRoundTiles<kColumns>* kWarps * 16 * kColumns;

__device__ inline int tiles_of_block(int rows) {
  return (rows / 16 - static_cast<int>(blockIdx.x) + static_cast<int>(gridDim.x) - 1) / static_cast<int>(gridDim.x);
}

// What both kernels share: goes through the block's row tiles with the warp's segment of the operand; `finish(row,
// column, sum)` gets every result once.
template <int kColumns, class Locate, class Finish>
__device__ inline void run_tiles(WeightRing& ring, const Locate& locate, int tiles, int tokens, float* partials,
                                 const uint4 (&x)[2 * kStages], const Finish& finish) {
  float* mine = partials + threadIdx.x / 32 * 16 * kColumns;
#pragma unroll 1
  for (int n = 0; n < tiles; ++n) {
    float sum[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    ring.multiply_unit(n, locate, x, sum);
    const int in_round = n % kRoundTiles<kColumns>;
    store_partial<kColumns>(mine + in_round * kWarps * 16 * kColumns, sum);
    if (in_round + 1 == kRoundTiles<kColumns> || n + 1 == tiles) {
      __syncthreads();
      for (int i = threadIdx.x; i < (in_round + 1) * 16 * kColumns; i += kThreads) {
        const int tile = i / (16 * kColumns);
        const int element = i % (16 * kColumns);
        if (element % kColumns < tokens) {
          finish((blockIdx.x + (n - in_round + tile) * gridDim.x) * 16 + element / kColumns, element % kColumns,
                 sum_segments<kColumns>(partials + tile * kWarps * 16 * kColumns + element, kWarps));
        }
      }
      if (n + 1 < tiles) __syncthreads();
    }
  }
}

template <int kColumns>
__global__ void __launch_bounds__(kThreads, 2) norm_linear_kernel(const NormLinearArgs args) {
  extern __shared__ __align__(128) char shared[];
  float* partials = reinterpret_cast<float*>(shared + WeightRing::kBytes);
  bf16* operand = reinterpret_cast<bf16*>(partials + kPartialFloats<kColumns>);
  float* scratch = reinterpret_cast<float*>(operand + kColumns * operand_stride(kHidden));
  const int warp = threadIdx.x / 32;
  const int tiles = tiles_of_block(args.rows);
  const auto locate = [&](int n) {
    return n < tiles ? unit_of(args.weight, blockIdx.x + n * gridDim.x, warp, kHidden) : Unit{};
  };
  WeightRing ring(shared);
  ring.fill(locate);
  const RmsNorm norm(args.gamma, args.eps);
  wait_for_kernel_before();
  start_kernel_after();
  if (args.cleared != nullptr && blockIdx.x == 0 && threadIdx.x == 0) *args.cleared = 0;
  norm.run(args.x, args.tokens, operand, scratch);
  uint4 x[2 * kStages];
  operand_pieces(operand, operand_stride(kHidden), warp * kSegment, args.tokens, x);
  run_tiles<kColumns>(ring, locate, tiles, args.tokens, partials, x, [&](int row, int column, float sum) {
    args.y[static_cast<size_t>(column) * args.rows + row] = sum;
  });
}

template <int kColumns>
__global__ void __launch_bounds__(kThreads, 2) linear_residual_kernel(const LinearResidualArgs args) {
  extern __shared__ __align__(128) char shared[];
  float* partials = reinterpret_cast<float*>(shared + WeightRing::kBytes);
  const int warp = threadIdx.x / 32;
  const int g = threadIdx.x % 32 / 4;
  const int tiles = tiles_of_block(args.rows);
  const auto locate = [&](int n) {
    return n < tiles ? unit_of(args.weight, blockIdx.x + n * gridDim.x, warp, kHidden) : Unit{};
  };
  WeightRing ring(shared);
  ring.fill(locate);
  wait_for_kernel_before();
  start_kernel_after();
  const bf16* from =
      static_cast<const bf16*>(args.a) + static_cast<size_t>(g) * kHidden + warp * kSegment + threadIdx.x % 4 * 8;
  uint4 x[2 * kStages];
#pragma unroll
  for (int i = 0; i < 2 * kStages; ++i) x[i] = g < args.tokens ? load_global(from + 32 * i) : make_uint4(0, 0, 0, 0);
  run_tiles<kColumns>(ring, locate, tiles, args.tokens, partials, x, [&](int row, int column, float sum) {
    float* to = args.x + static_cast<size_t>(column) * args.rows + row;
    *to = __fadd_rn(__ldcg(to), sum);
  });
}

// As many blocks as take the same number of row tiles, at most one a multiprocessor.
int blocks_for(int tiles) {
  const int each = (tiles + kBlocks - 1) / kBlocks;
  return (tiles + each - 1) / each;
}

template <class Kernel, class Args>
cudaError_t start(Kernel kernel, const Args& args, size_t shared, const Launch& how) {
  const cudaError_t error = cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                                                 cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared));
  if (error != cudaSuccess) return error;
  return launch(how, kernel, blocks_for(args.rows / 16), kThreads, shared, args);
}

template <int kColumns>
size_t shared_bytes(bool norm) {
  const size_t operand = norm ? kColumns * operand_stride(kHidden) * sizeof(bf16) + kNormScratch * sizeof(float) : 0;
  return WeightRing::kBytes + kPartialFloats<kColumns> * sizeof(float) + operand;
}

}  // namespace

cudaError_t norm_linear(const NormLinearArgs& args, const Launch& how) {
  if (args.tokens == 1) return start(norm_linear_kernel<1>, args, shared_bytes<1>(true), how);
  return start(norm_linear_kernel<8>, args, shared_bytes<8>(true), how);
}

cudaError_t linear_residual(const LinearResidualArgs& args, const Launch& how) {
  if (args.tokens == 1) return start(linear_residual_kernel<1>, args, shared_bytes<1>(false), how);
  return start(linear_residual_kernel<8>, args, shared_bytes<8>(false), how);
}

}  // namespace assay::cuda::fast
