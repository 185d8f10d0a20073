// Router and experts of the persistent kernel.
#pragma once

#include "backends/cuda/fast/persistent_step.cuh"

namespace assay::cuda::fast::persistent {

template <int kColumns>
__device__ inline void Step<kColumns>::up(int layer) {
  const LayerWeights& l = a_.layers[layer];
  const ExpertWeights& w = l.experts;
  const RmsNorm norm(l.mlp_gamma, a_.eps);
  uint4 x[2 * kStages];
  normed(norm, a_.tagged.projected, tag(layer), x);
  barrier_.stamp(7);
  if (turn_.router() < w.experts / 16) {
    tiles(1, x, [&](int, int row, int column, float sum) {
      store_tagged(a_.tagged.logits + column * w.experts + turn_.router() * 16 + row,
                   __float_as_uint(a_.rounded_router ? round_bf16(sum) : sum), tag(layer));
    });
    block_sync();
  }
  const int per_expert = w.width / 8;
  const int shared = count_tiles(turn_.shared(), w.shared_width / 8, turn_.grid);
  int count = shared;
  int first = 0;
  bool routing = w.experts > 0;
#pragma unroll 1
  for (int n = 0; n < count || routing; ++n) {
    if (routing && n == shared) {
      route({.bias = w.bias,
             .experts = w.experts,
             .topk = w.topk,
             .scaling_factor = w.scaling_factor,
             .tagged = a_.tagged.logits,
             .tag = tag(layer),
             .chosen = turn_.block == 0 ? chosen_ : nullptr,
             .margins = turn_.block == 0 ? margins_ : nullptr},
            a_.tokens, s_.routed);
      if (threadIdx.x == 0) barrier_arrive(shared_address(&s_.ring.known));
      if (chosen_ != nullptr) chosen_ += a_.routing_stride * w.topk;
      if (margins_ != nullptr) margins_ += a_.routing_stride;
      count += count_tiles(turn_.routed(), s_.routed.active_count * per_expert, turn_.grid);
      routing = false;
    }
    if (n < count) unit(x, partial(n - first));
    if (n + 1 - first == kRoundTiles<kColumns> || (n + 1 >= count && !routing)) {
      block_sync();
      const int tiles = min(kRoundTiles<kColumns>, count - first);
      for (int i = threadIdx.x; i < tiles * 4 * kColumns; i += kThreads) {
        activate(layer, i / (4 * kColumns), first + i / (4 * kColumns), shared, i % (4 * kColumns));
      }
      first += kRoundTiles<kColumns>;
      block_sync();
    }
  }
  barrier_.arrive(3);
}

template <int kColumns>
__device__ inline void Step<kColumns>::activate(int layer, int in_round, int place, int shared, int element) {
  const ExpertWeights& w = a_.layers[layer].experts;
  const int token = element % kColumns;
  if (token >= a_.tokens) return;
  const int per_expert = w.width / 8;
  int row = element / kColumns * 2;
  float factor = 1.0f;
  bf16* base;
  if (place < shared) {
    row += (turn_.shared() + place * turn_.grid) * 8;
    base = static_cast<bf16*>(a_.buffers.shared_inner) + static_cast<size_t>(token) * w.shared_width;
  } else {
    const int index = turn_.routed() + (place - shared) * turn_.grid;
    const int slot = index / per_expert;
    row += (index - slot * per_expert) * 8;
    const int rank = rank_of(s_.routed, token, s_.routed.expert[slot]);
    if (rank < 0) return;
    factor = s_.routed.weight[token][rank];
    base = static_cast<bf16*>(a_.buffers.inner) + static_cast<size_t>(token * w.topk + rank) * w.width;
  }
  const float* from = s_.partials + in_round * kWarps * 16 * kColumns + element / kColumns * 2 * kColumns + token;
  bf16 inner[2];
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const float gate = sum_segments<kColumns>(from + i * kColumns, kWarps);
    const float up = sum_segments<kColumns>(from + (8 + i) * kColumns, kWarps);
    inner[i] = __float2bfloat16_rn(activated(gate, up, factor));
  }
  const uint32_t word = pack(inner[0], inner[1]);
  *reinterpret_cast<uint32_t*>(base + operand_place(row)) = word;
}

template <int kColumns>
__device__ inline void Step<kColumns>::down(int layer) {
  const ExpertWeights& w = a_.layers[layer].experts;
  const int g = threadIdx.x % 32 / 4;
  const bool mine = turn_.strip() < kHidden / 16;
  const int segs = w.experts > 0 ? segments(w.width) : 1;
  const int shared_segs = segments(w.shared_width);
  const int active = w.experts > 0 ? s_.routed.active_count : 0;
  const int routed_units = active * segs;
  const int all_units = routed_units + shared_segs;
  const int units = (all_units + kWarps - 1) / kWarps;
  const int row = threadIdx.x / kColumns;
  const int column = threadIdx.x % kColumns;
  const bool sums = mine && row < 16 && column < a_.tokens;
  float* to = a_.buffers.x + static_cast<size_t>(column) * kHidden + turn_.strip() * 16 + row;
  const float residual = sums ? __ldcg(to) : 0.0f;
  barrier_.wait(4);
  if (!mine) return;
  const auto operand = [&](int n) -> const bf16* {
    const int u = warp_ + n * kWarps;
    if (u >= all_units || g >= a_.tokens) return nullptr;
    const int at = threadIdx.x % 4 * 8;
    if (u >= routed_units) {
      return static_cast<const bf16*>(a_.buffers.shared_inner) + static_cast<size_t>(g) * w.shared_width +
             (u - routed_units) * kSegment + at;
    }
    const int slot = u / segs;
    const int rank = rank_of(s_.routed, g, s_.routed.expert[slot]);
    if (rank < 0) return nullptr;
    return static_cast<const bf16*>(a_.buffers.inner) + static_cast<size_t>(g * w.topk + rank) * w.width +
           (u - slot * segs) * kSegment + at;
  };
  const auto load = [&](uint4(&pieces)[2 * kStages], const bf16* from) {
#pragma unroll
    for (int i = 0; i < 2 * kStages; ++i)
      pieces[i] = from != nullptr ? load_global(from + 32 * i) : make_uint4(0, 0, 0, 0);
  };
  uint4 x[2 * kStages];
  const int routed_numbers = w.experts > 0 ? w.topk * w.width : 0;
  if constexpr (kColumns == 1) {
    for (int i = threadIdx.x; i < (routed_numbers + w.shared_width) / 8; i += kThreads) {
      const bf16* from = i < routed_numbers / 8
                             ? static_cast<const bf16*>(a_.buffers.inner) + i * 8
                             : static_cast<const bf16*>(a_.buffers.shared_inner) + (i - routed_numbers / 8) * 8;
      copy_async(shared_address(s_.staged + i * 8), from);
    }
    copy_commit();
    copy_wait<0>();
    block_sync();
  } else {
    load(x, operand(0));
  }
  float total = 0.0f;
  int first_slot = 0;
  const int rounds = active == 0 ? 0 : (active - 1) / kRoundSlots;
  int round = 0;
#pragma unroll 1
  for (int n = 0; n < units; ++n) {
    const int u = warp_ + n * kWarps;
    if (u < all_units) {
      float sum[4] = {0.0f, 0.0f, 0.0f, 0.0f};
      uint4 next[2 * kStages];
      if constexpr (kColumns == 1) {
        const int slot = u / segs;
        const int k = u >= routed_units ? routed_numbers + (u - routed_units) * kSegment
                                        : slot * w.width + (u - slot * segs) * kSegment;
        operand_pieces(s_.staged, 0, k, 1, x);
      } else {
        load(next, operand(n + 1));
      }
      const int width =
          u >= routed_units ? w.shared_width - (u - routed_units) * kSegment : w.width - u % segs * kSegment;
      multiply_unit(s_.ring, sequence_ + u, x, sum, width / 16);
      if constexpr (kColumns > 1) {
#pragma unroll
        for (int i = 0; i < 2 * kStages; ++i) x[i] = next[i];
      }
      store_partial<kColumns>(s_.down + (u - first_slot * segs) * 16 * kColumns, sum);
    }
    const bool last = n + 1 == units;
    if (last || (round < rounds && n + 1 == (round + 1) * segs)) {
      block_sync();
      const int slots = last ? active - first_slot : kRoundSlots;
      for (int i = threadIdx.x; i < (slots + (last && shared_segs > 0 ? 1 : 0)) * 16 * kColumns; i += kThreads) {
        const int slot = i / (16 * kColumns);
        float* first = s_.down + slot * segs * 16 * kColumns + i % (16 * kColumns);
        *first = sum_segments<kColumns>(first, slot < slots ? segs : shared_segs);
      }
      block_sync();
      if (sums) {
        const float* mine_sums = s_.down + row * kColumns + column;
        for (int slot = 0; slot < slots; ++slot) {
          if (kColumns == 1 || rank_of(s_.routed, column, s_.routed.expert[first_slot + slot]) >= 0) {
            total = __fadd_rn(total, mine_sums[slot * segs * 16 * kColumns]);
          }
        }
        if (last && shared_segs > 0) total = __fadd_rn(total, mine_sums[slots * segs * 16 * kColumns]);
      }
      first_slot += kRoundSlots;
      ++round;
      if (!last) block_sync();
    }
  }
  sequence_ += all_units;
  if (sums) {
    const float now = __fadd_rn(residual, total);
    *to = now;
    store_tagged(a_.tagged.x + static_cast<size_t>(column) * kHidden + turn_.strip() * 16 + row, __float_as_uint(now),
                 tag(layer));
  }
  barrier_.stamp(8);
}

}  // namespace assay::cuda::fast::persistent
