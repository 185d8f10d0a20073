#include "backends/cuda/fast/experts.h"
#include "backends/cuda/fast/norm.cuh"
#include "backends/cuda/fast/route.cuh"

namespace assay::cuda::fast {
namespace {

constexpr int kBlocks = 132;
template <int kColumns>
constexpr int kRoundTiles = kColumns == 1 ? 16 : 4;

template <int kColumns>
constexpr int kPartialFloats = kRoundTiles<kColumns>* kWarps * 16 * kColumns;

__device__ inline RouterArgs router_args(const ExpertsArgs& a) {
  return {.logits = a.logits,
          .done = a.done,
          .bias = a.weights.bias,
          .experts = a.weights.experts,
          .topk = a.weights.topk,
          .scaling_factor = a.weights.scaling_factor,
          .chosen = blockIdx.x == 0 ? a.chosen : nullptr,
          .margins = blockIdx.x == 0 ? a.margins : nullptr};
}

// The row tiles of one block, in order: at most one of the router, those of the shared expert, those of the experts.
// Shared tiles go to the blocks from the last one down, so that the router's blocks get fewer.
struct Tiles {
  int router;  // 0 or 1
  int shared;
  int routed;  // known after route()
};

template <int kColumns>
__global__ void __launch_bounds__(kThreads, 2) experts_up_kernel(const ExpertsArgs args) {
  extern __shared__ __align__(128) char shared_memory[];
  __shared__ Routed routed;
  const ExpertWeights& w = args.weights;
  float* partials = reinterpret_cast<float*>(shared_memory + WeightRing::kBytes);
  bf16* operand = reinterpret_cast<bf16*>(partials + kPartialFloats<kColumns>);
  float* scratch = reinterpret_cast<float*>(operand + kColumns * operand_stride(kHidden));
  const int warp = threadIdx.x / 32;
  const int block = blockIdx.x;
  const int grid = gridDim.x;
  const int per_expert = w.width / 8;
  const int last = grid - 1 - block;
  Tiles tiles = {block < w.experts / 16 ? 1 : 0, max(0, (w.shared_width / 8 - last + grid - 1) / grid), 0};

  int units = tiles.router + tiles.shared;
  const auto locate = [&](int n) {
    if (n >= units) return Unit{};
    if (n < tiles.router) return unit_of(w.router, block, warp, kHidden);
    const int shared_tile = n - tiles.router;
    if (shared_tile < tiles.shared) return unit_of(w.shared_fc1, last + shared_tile * grid, warp, kHidden);
    const int index = block + (shared_tile - tiles.shared) * grid;
    const int slot = index / per_expert;
    const size_t stride = static_cast<size_t>(w.width) * kHidden * 4;
    return unit_of(static_cast<const char*>(w.fc1) + routed.expert[slot] * stride, index - slot * per_expert, warp,
                   kHidden);
  };
  WeightRing ring(shared_memory);
  ring.fill(locate);
  const RmsNorm norm(args.gamma, args.eps);
  wait_for_kernel_before();
  start_kernel_after();
  norm.run(args.x, args.tokens, operand, scratch);

  uint4 x[2 * kStages];
  operand_pieces(operand, operand_stride(kHidden), warp * kSegment, args.tokens, x);
  const auto run_unit = [&](int n, int in_round) {
    float sum[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    ring.multiply_unit(n, locate, x, sum);
    store_partial<kColumns>(partials + (in_round * kWarps + warp) * 16 * kColumns, sum);
  };

  if (tiles.router) {
    run_unit(0, 0);
    __syncthreads();
    if (threadIdx.x < 16 * kColumns && threadIdx.x % kColumns < args.tokens) {
      const float logit = sum_segments<kColumns>(partials + threadIdx.x, kWarps);
      args.logits[threadIdx.x % kColumns * w.experts + block * 16 + threadIdx.x / kColumns] =
          args.rounded_logits ? round_bf16(logit) : logit;
      __threadfence();
    }
    __syncthreads();
    if (threadIdx.x == 0) add_release(args.done, 1);
  }

  bool routing = w.experts > 0;
  int first = tiles.router;  // tile of the round
#pragma unroll 1
  for (int n = tiles.router; n < units || routing; ++n) {
    if (routing && n >= units) {
      route(router_args(args), args.tokens, routed);
      tiles.routed = max(0, (routed.active_count * per_expert - block + grid - 1) / grid);
      units = tiles.router + tiles.shared + tiles.routed;
      ring.refill(n, locate);
      routing = false;
    }
    if (n < units) run_unit(n, n - first);
    if (n + 1 - first == kRoundTiles<kColumns> || (n + 1 >= units && !routing)) {
      __syncthreads();
      const int count = min(kRoundTiles<kColumns>, units - first);
      for (int i = threadIdx.x; i < count * 8 * kColumns; i += kThreads) {
        const int tile = i / (8 * kColumns);
        const int element = i % (8 * kColumns);  // row * kColumns + column
        const int token = element % kColumns;
        if (token >= args.tokens) continue;
        const int place = first + tile - tiles.router;
        int row;
        float factor = 1.0f;
        bf16* to;
        if (place < tiles.shared) {
          row = (last + place * grid) * 8;
          to = static_cast<bf16*>(args.shared_inner) + static_cast<size_t>(token) * w.shared_width;
        } else {
          const int index = block + (place - tiles.shared) * grid;
          const int slot = index / per_expert;
          row = (index - slot * per_expert) * 8;
          const int rank = rank_of(routed, token, routed.expert[slot]);
          if (rank < 0) continue;
          factor = routed.weight[token][rank];
          to = static_cast<bf16*>(args.inner) + static_cast<size_t>(token * w.topk + rank) * w.width;
        }
        const float* from = partials + tile * kWarps * 16 * kColumns + element;
        const float gate = sum_segments<kColumns>(from, kWarps);
        const float up = sum_segments<kColumns>(from + 8 * kColumns, kWarps);
        const float inner = activated(gate, up, factor);
        to[operand_place(row + element / kColumns)] = __float2bfloat16_rn(inner);
      }
      first += kRoundTiles<kColumns>;
      __syncthreads();
    }
  }
}

template <int kColumns>
cudaError_t start(const ExpertsArgs& args, const Launch& how) {
  const size_t shared = WeightRing::kBytes + kPartialFloats<kColumns> * sizeof(float) +
                        kColumns * operand_stride(kHidden) * sizeof(bf16) + kNormScratch * sizeof(float);
  const auto kernel = experts_up_kernel<kColumns>;
  const cudaError_t error = cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                                                 cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared));
  if (error != cudaSuccess) return error;
  return launch(how, kernel, kBlocks, kThreads, shared, args);
}

}  // namespace

cudaError_t experts_up(const ExpertsArgs& args, const Launch& how) {
  return args.tokens == 1 ? start<1>(args, how) : start<8>(args, how);
}

}  // namespace assay::cuda::fast
