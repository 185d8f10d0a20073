#include "backends/cuda/kernels/choose.cuh"
#include "backends/cuda/kernels/dependent_launch.cuh"
#include "backends/cuda/kernels/linear_result.cuh"
#include "backends/cuda/kernels/norm.cuh"
#include "backends/cuda/kernels/routing.h"
#include "backends/cuda/kernels/tensor_core.cuh"
#include "backends/cuda/runtime/error.h"

namespace assay::cuda {
namespace {

__global__ void choose_kernel(ChooseOnDevice a) {
  extern __shared__ float scratch[];
  const int token = static_cast<int>(blockIdx.x);
  choose_token(a, a.args.logits + int64_t{token} * a.experts, token, scratch);
}

constexpr int kRouteWarps = 2 * kTileTokens;
constexpr int kSegmentTiles = kBlock / kTile;

// One block: the norm of 8 tokens, their logits and their choices, a warp each. Two warps take a segment of K, half of
// the row tiles each; the segments' sums (segments, row tiles, 32 lanes, 4) meet in shared memory.
__global__ void __launch_bounds__(kRouteWarps * 32) route_kernel(LinearArgs a, ChooseOnDevice choose, NormArgs norm) {
  extern __shared__ float4 sums[];
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int first = static_cast<int>(blockIdx.x) * kTileTokens;
  const int count = min(kTileTokens, a.tokens - first);
  const int k_tiles = (a.weight.cols + kTile - 1) / kTile;
  const int row_tiles = (a.weight.rows + kTile - 1) / kTile;
  const int segments = (k_tiles + kSegmentTiles - 1) / kSegmentTiles;
  start_kernel_after();
  if (norm.x != nullptr) {
    if (warp < count) {
      normalise_by_warp(norm, norm.x + int64_t{first + warp} * norm.width,
                        static_cast<Bfloat16*>(norm.y.data) + int64_t{first + warp} * norm.y.stride);
    }
    __syncthreads();
  }
  // Of token lane / 4 (the first in place of one that is not there), two columns each.
  const int64_t row = first + (lane / 4 < count ? lane / 4 : 0);
  const auto* x =
      reinterpret_cast<const uint32_t*>(static_cast<const Bfloat16*>(a.x.data) + row * a.x.stride) + lane % 4;
  for (int half = warp; half < 2 * segments; half += kRouteWarps) {
    const int segment = half / 2;
    const int begin = segment * kSegmentTiles;
    const int tiles = min(kSegmentTiles, k_tiles - begin);
    uint32_t b[kSegmentTiles][2];
#pragma unroll
    for (int k = 0; k < kSegmentTiles; ++k) {
      const uint32_t* at = x + (begin + (k < tiles ? k : 0)) * 8;
      b[k][0] = load_ahead(at);
      b[k][1] = load_ahead(at + 4);
    }
    for (int tile = half % 2; tile < row_tiles; tile += 2) {
      const uint4* w = static_cast<const uint4*>(a.weight.data) + (int64_t{tile} * k_tiles + begin) * 32 + lane;
      uint4 held[kSegmentTiles];
#pragma unroll
      for (int k = 0; k < kSegmentTiles; ++k) held[k] = load_ahead(w + (k < tiles ? k : 0) * 32);
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
      sums[(segment * row_tiles + tile) * 32 + lane] = make_float4(acc[0], acc[1], acc[2], acc[3]);
    }
  }
  __syncthreads();
  float* const logits = reinterpret_cast<float*>(sums + segments * row_tiles * 32);  // (8, experts)
  for (int tile = warp; tile < row_tiles; tile += kRouteWarps) {
    float total[4] = {};
    for (int segment = 0; segment < segments; ++segment) {
      const float4 part = sums[(segment * row_tiles + tile) * 32 + lane];
      total[0] = total[0] + part.x;
      total[1] = total[1] + part.y;
      total[2] = total[2] + part.z;
      total[3] = total[3] + part.w;
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int row = tile * kTile + lane / 4 + i / 2 * 8;
      const int token = lane % 4 * 2 + i % 2;
      if (row < a.weight.rows && token < count) {
        logits[token * choose.experts + row] = result_of(a, 0, row, first + token, total[i]);
      }
    }
  }
  __syncthreads();
  if (warp >= count) return;
  float* const scratch =
      logits + kTileTokens * choose.experts + warp * choose_floats(choose.experts, choose.groups, choose.topk);
  choose_token(choose, logits + warp * choose.experts, first + warp, scratch);
}

constexpr size_t kMostShared = size_t{48} << 10;

ChooseOnDevice on_device(const ChooseArgs& args) {
  const model::MoeConfig& moe = *args.moe;
  ChooseOnDevice a{args,
                   moe.experts,
                   moe.topk,
                   moe.groups,
                   moe.group_topk,
                   moe.score == model::RouterScore::kSigmoid,
                   moe.pre_softmax,
                   moe.scaling_factor != 1,
                   static_cast<float>(moe.scaling_factor)};
  a.args.moe = nullptr;  // host memory
  return a;
}

// Bytes of shared memory of a block of route_kernel.
size_t route_shared(const Matrix& weight, const model::MoeConfig& moe) {
  const auto segments = static_cast<size_t>((weight.cols + kBlock - 1) / kBlock);
  const auto row_tiles = static_cast<size_t>((weight.rows + kTile - 1) / kTile);
  const auto floats = static_cast<size_t>(moe.experts + choose_floats(moe.experts, moe.groups, moe.topk)) * kTileTokens;
  return segments * row_tiles * 32 * sizeof(float4) + floats * sizeof(float);
}

}  // namespace

void choose_experts(const ChooseArgs& args, cudaStream_t stream) {
  if (args.tokens == 0) return;
  const ChooseOnDevice a = on_device(args);
  const auto shared = static_cast<size_t>(choose_floats(a.experts, a.groups, a.topk)) * sizeof(float);
  choose_kernel<<<static_cast<unsigned>(args.tokens), 32, shared, stream>>>(a);
  check_launch("choose_experts");
}

bool route_takes(const RouteArgs& args) {
  const LinearArgs& logits = args.logits;
  return logits.x.bf16 && logits.x_divisor == 1 && logits.groups == nullptr && !logits.onto &&
         args.norm.gather == nullptr && route_shared(logits.weight, *args.choose.moe) <= kMostShared;
}

void route(const RouteArgs& args, cudaStream_t stream) {
  if (args.choose.tokens == 0) return;
  const auto blocks = static_cast<unsigned>((args.choose.tokens + kTileTokens - 1) / kTileTokens);
  const size_t shared = route_shared(args.logits.weight, *args.choose.moe);
  route_kernel<<<blocks, kRouteWarps * 32, shared, stream>>>(args.logits, on_device(args.choose), args.norm);
  check_launch("route");
}

}  // namespace assay::cuda
