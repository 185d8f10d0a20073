#include "backends/cuda/fast/experts.h"
#include "backends/cuda/fast/norm.cuh"
#include "backends/cuda/fast/route.cuh"
#include "backends/cuda/fast/weight_stream.cuh"

namespace assay::cuda::fast {
namespace {

constexpr int kRoundSlots = 8;  // active experts between two barriers

// Units between two barriers, at most.
__host__ __device__ inline int most_units(const ExpertWeights& w) {
  return kRoundSlots * segments(w.width) + segments(w.shared_width);
}

// A block has one row tile and goes through all active experts, ascending, then the shared one. A unit is a segment of
// an expert; the warps take them in turn.
template <int kColumns>
__global__ void __launch_bounds__(kThreads, 2) experts_down_kernel(const ExpertsArgs args) {
  extern __shared__ __align__(128) char shared_memory[];
  __shared__ Routed routed;
  const ExpertWeights& w = args.weights;
  float* partials = reinterpret_cast<float*>(shared_memory + WeightRing::kBytes);
  const int warp = threadIdx.x / 32;
  const int g = threadIdx.x % 32 / 4;
  const int tile = blockIdx.x;
  const int segs = w.experts > 0 ? segments(w.width) : 1;
  const int shared_segs = segments(w.shared_width);
  // The blocks of experts_up have all seen the router's flag before this kernel may start, so nothing is waited for.
  int active = 0;
  if (w.experts > 0) {
    route({args.logits, args.done, w.bias, w.experts, w.topk, w.scaling_factor}, args.tokens, routed);
    active = routed.active_count;
  }
  const int routed_units = active * segs;
  const int all_units = routed_units + shared_segs;
  const int units = (all_units + kWarps - 1) / kWarps;
  const size_t stride = static_cast<size_t>(kHidden) * w.width * 2;
  const auto locate = [&](int n) {
    const int u = warp + n * kWarps;
    if (u >= all_units) return Unit{};
    if (u >= routed_units) return unit_of(w.shared_fc2, tile, u - routed_units, w.shared_width);
    const int slot = u / segs;
    return unit_of(static_cast<const char*>(w.fc2) + routed.expert[slot] * stride, tile, u - slot * segs, w.width);
  };
  WeightRing ring(shared_memory);
  ring.fill(locate);
  wait_for_kernel_before();
  start_kernel_after();

  // The operand of the warp's n-th unit that this lane holds; null: zeros.
  const auto operand = [&](int n) -> const bf16* {
    const int u = warp + n * kWarps;
    if (u >= all_units || g >= args.tokens) return nullptr;
    const int at = threadIdx.x % 4 * 8;
    if (u >= routed_units) {
      return static_cast<const bf16*>(args.shared_inner) + static_cast<size_t>(g) * w.shared_width +
             (u - routed_units) * kSegment + at;
    }
    const int slot = u / segs;
    const int rank = rank_of(routed, g, routed.expert[slot]);
    if (rank < 0) return nullptr;
    return static_cast<const bf16*>(args.inner) + static_cast<size_t>(g * w.topk + rank) * w.width +
           (u - slot * segs) * kSegment + at;
  };
  const auto load = [&](uint4(&pieces)[2 * kStages], const bf16* from) {
#pragma unroll
    for (int i = 0; i < 2 * kStages; ++i)
      pieces[i] = from != nullptr ? load_global(from + 32 * i) : make_uint4(0, 0, 0, 0);
  };
  uint4 x[2 * kStages];  // of the unit at work
  bf16* staged = reinterpret_cast<bf16*>(partials + most_units(w) * 16 * kColumns);
  if constexpr (kColumns == 1) {
    // One token's operand fits: the experts' parts, then the shared one.
    const int routed_pieces = w.experts > 0 ? w.topk * w.width / 8 : 0;
    for (int i = threadIdx.x; i < routed_pieces + w.shared_width / 8; i += kThreads) {
      const bf16* from = i < routed_pieces ? static_cast<const bf16*>(args.inner) + i * 8
                                           : static_cast<const bf16*>(args.shared_inner) + (i - routed_pieces) * 8;
      copy_async(shared_address(staged + i * 8), from);
    }
    copy_commit();
    copy_wait<0>();
    __syncthreads();
  } else {
    load(x, operand(0));
  }
  const int row = threadIdx.x / kColumns;  // of the element that this thread sums up, in the first threads
  const int column = threadIdx.x % kColumns;
  const bool sums = row < 16 && column < args.tokens;
  float* to = args.x + static_cast<size_t>(column) * kHidden + tile * 16 + row;
  const float residual = sums ? __ldcg(to) : 0.0f;
  float total = 0.0f;
  int first_slot = 0;
  const int round_units = kRoundSlots * segs / kWarps;
  static_assert(kRoundSlots % kWarps == 0);
  const int rounds = active == 0 ? 0 : (active - 1) / kRoundSlots;  // full ones, before the last
  int round = 0;
#pragma unroll 1
  for (int n = 0; n < units; ++n) {
    const int u = warp + n * kWarps;
    float sum[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    uint4 next[2 * kStages];
    if constexpr (kColumns == 1) {
      const int slot = u / segs;
      const int k = u >= routed_units ? (w.experts > 0 ? w.topk * w.width : 0) + (u - routed_units) * kSegment
                                      : slot * w.width + (u - slot * segs) * kSegment;
      operand_pieces(staged, 0, k, u < all_units ? 1 : 0, x);
    } else {
      load(next, operand(n + 1));
    }
    const int width =
        u >= routed_units ? w.shared_width - (u - routed_units) * kSegment : w.width - u % segs * kSegment;
    ring.multiply_unit(n, locate, x, sum, width / 16);
    if constexpr (kColumns > 1) {
#pragma unroll
      for (int i = 0; i < 2 * kStages; ++i) x[i] = next[i];
    }
    if (u < all_units) store_partial<kColumns>(partials + (u - first_slot * segs) * 16 * kColumns, sum);
    const bool last = n + 1 == units;
    if (last || (round < rounds && n + 1 == (round + 1) * round_units)) {
      __syncthreads();
      const int slots = last ? active - first_slot : kRoundSlots;
      for (int i = threadIdx.x; i < (slots + (last && shared_segs > 0 ? 1 : 0)) * 16 * kColumns; i += kThreads) {
        const int slot = i / (16 * kColumns);
        float* first = partials + slot * segs * 16 * kColumns + i % (16 * kColumns);
        *first = sum_segments<kColumns>(first, slot < slots ? segs : shared_segs);
      }
      __syncthreads();
      if (sums) {
        const float* mine = partials + row * kColumns + column;
        for (int slot = 0; slot < slots; ++slot) {
          if (kColumns == 1 || rank_of(routed, column, routed.expert[first_slot + slot]) >= 0) {
            total = __fadd_rn(total, mine[slot * segs * 16 * kColumns]);
          }
        }
        if (last && shared_segs > 0) total = __fadd_rn(total, mine[slots * segs * 16 * kColumns]);
      }
      first_slot += kRoundSlots;
      ++round;
      if (!last) __syncthreads();
    }
  }
  if (sums) *to = __fadd_rn(residual, total);
}

template <int kColumns>
cudaError_t start(const ExpertsArgs& args, const Launch& how) {
  const ExpertWeights& w = args.weights;
  const size_t staged =
      kColumns > 1 ? 0 : (static_cast<size_t>(w.topk) * w.width + w.shared_width + kSegment) * sizeof(bf16);
  const size_t shared =
      WeightRing::kBytes + static_cast<size_t>(most_units(w)) * 16 * kColumns * sizeof(float) + staged;
  const auto kernel = experts_down_kernel<kColumns>;
  const cudaError_t error = cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                                                 cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared));
  if (error != cudaSuccess) return error;
  return launch(how, kernel, kHidden / 16, kThreads, shared, args);
}

}  // namespace

cudaError_t experts_down(const ExpertsArgs& args, const Launch& how) {
  return args.tokens == 1 ? start<1>(args, how) : start<8>(args, how);
}

}  // namespace assay::cuda::fast
