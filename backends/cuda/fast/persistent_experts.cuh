// Router and experts of the persistent kernel.
#pragma once

#include "backends/cuda/fast/persistent_step.cuh"

namespace assay::cuda::fast::persistent {

// Where the router's logits of a layer are.
__device__ inline RouterArgs router_args(const Args& a, const ExpertWeights& w, const uint32_t* board, int layer) {
  return {.bias = w.bias,
          .experts = w.experts,
          .topk = w.topk,
          .scaling_factor = w.scaling_factor,
          .words = board + static_cast<size_t>(layer) * a.most_tokens * a.board_size + BoardPlaces::kLogits,
          .word_stride = a.board_size};
}

// Adds where block 0 writes a layer's choice.
__device__ inline void write_choice(const Args& a, int routed_layer, RouterArgs& args) {
  if (blockIdx.x != 0) return;
  if (a.chosen != nullptr) args.chosen = a.chosen + static_cast<size_t>(routed_layer) * a.routing_stride * args.topk;
  if (a.margins != nullptr) args.margins = a.margins + static_cast<size_t>(routed_layer) * a.routing_stride;
}

// By a warp of its own, for one token: chooses every layer's experts as soon as the logits are there.
template <int kColumns>
__device__ inline void route_all(const Args& a, Shared<kColumns>& s) {
  const uint32_t* board = board_set(a, false);
  int routed = 0;
  for (int layer = 0; layer < a.layer_count; ++layer) {
    const ExpertWeights& w = a.layers[layer].experts;
    if (w.experts == 0) continue;
    RouterArgs args = router_args(a, w, board, layer);
    write_choice(a, routed++, args);
    route_one(args, s.routed);
    if (threadIdx.x % 32 == 0) barrier_arrive(shared_address(&s.ring.known));
  }
}

// By a warp of its own: what the launch before this one left on the board is taken off.
__device__ inline void clear_board(const Args& a) {
  uint32_t* board = board_set(a, true);
  const int pieces = static_cast<int>(__ldcg(a.counters + 1)) * a.board_size / 4;
  for (int layer = 0; layer < a.layer_count; ++layer) {
    auto* words = reinterpret_cast<uint4*>(board + static_cast<size_t>(layer) * a.most_tokens * a.board_size);
    for (int i = blockIdx.x * 32 + threadIdx.x % 32; i < pieces; i += gridDim.x * 32) words[i] = make_uint4(0, 0, 0, 0);
  }
}

template <int kColumns>
__device__ inline void Step<kColumns>::choose(int layer) {
  const ExpertWeights& w = a_.layers[layer].experts;
  const uint32_t known = shared_address(&s_.ring.known);
  if constexpr (kColumns == 1) {
    barrier_wait(known, routings_ % 2);
  } else {
    RouterArgs args = router_args(a_, w, board_, layer);
    write_choice(a_, routings_, args);
    route(args, a_.tokens, s_.routed);
    if (threadIdx.x == 0) barrier_arrive(known);
  }
  ++routings_;
}

template <int kColumns>
__device__ inline void Step<kColumns>::up(int layer) {
  const LayerWeights& l = a_.layers[layer];
  const ExpertWeights& w = l.experts;
  const RmsNorm norm(l.mlp_gamma, a_.eps);
  uint4 x[2 * kStages];
  normed(norm, layer, BoardPlaces::kProjected, x);
  barrier_.stamp(7);
  if (turn_.router() < w.experts / 16) {
    tiles(1, x, [&](int, int row, int column, float sum) {
      store_word(words(layer, column, BoardPlaces::kLogits) + turn_.router() * 16 + row,
                 __float_as_uint(a_.rounded_router ? round_bf16(sum) : sum));
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
      choose(layer);
      count += count_tiles(turn_.routed(), s_.routed.active_count * per_expert, turn_.grid);
      routing = false;
    }
    if (n < count) unit(x, partial(n - first));
    if (n + 1 - first == kRoundTiles || (n + 1 >= count && !routing)) {
      block_sync();
      const int tiles = min(kRoundTiles, count - first);
      for (int i = threadIdx.x; i < tiles * 4 * kColumns; i += kThreads) {
        activate(layer, i / (4 * kColumns), first + i / (4 * kColumns), shared, i % (4 * kColumns));
      }
      first += kRoundTiles;
      block_sync();
    }
  }
  if constexpr (kColumns > 1) barrier_.arrive(3);
  barrier_.stamp(6);
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
  int first;  // of one token's inner vectors
  if (place < shared) {
    row += (turn_.shared() + place * turn_.grid) * 8;
    first = w.topk * w.width;
    base = static_cast<bf16*>(a_.buffers.shared_inner) + static_cast<size_t>(token) * w.shared_width;
  } else {
    const int index = turn_.routed() + (place - shared) * turn_.grid;
    const int slot = index / per_expert;
    row += (index - slot * per_expert) * 8;
    const int rank = rank_of(s_.routed, token, s_.routed.expert[slot]);
    if (rank < 0) return;
    factor = s_.routed.weight[token][rank];
    first = rank * w.width;
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
  if constexpr (kColumns == 1) {
    store_word(words(layer, 0, a_.board_inner) + (first + operand_place(row)) / 2, word);
  } else {
    *reinterpret_cast<uint32_t*>(base + operand_place(row)) = word;
  }
}

// `pieces` times 16 bytes of inner vectors from the board to shared memory, once they are there.
template <int kColumns>
__device__ inline void Step<kColumns>::stage(const uint32_t* from, int pieces) {
  constexpr int kEach = (kStagedNumbers / 8 + kThreads - 1) / kThreads;
  uint4 words[kEach];
  bool missing[kEach];
#pragma unroll
  for (int i = 0; i < kEach; ++i) missing[i] = static_cast<int>(threadIdx.x) + i * kThreads < pieces;
  bool all;
  do {
    all = true;
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      if (missing[i]) missing[i] = !load_words(from + (threadIdx.x + i * kThreads) * 4, words[i]);
    }
#pragma unroll
    for (int i = 0; i < kEach; ++i) all = all && !missing[i];
  } while (!all);
  __syncwarp();
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const int piece = threadIdx.x + i * kThreads;
    if (piece < pieces) *reinterpret_cast<uint4*>(s_.staged + piece * 8) = words[i];
  }
  barrier_.stamp(9);
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
  if constexpr (kColumns > 1) barrier_.wait(4);
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
    stage(words(layer, 0, a_.board_inner), (routed_numbers + w.shared_width) / 8);
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
    residual_ = __fadd_rn(residual_, total);
    store_word(words(layer, column, BoardPlaces::kX) + turn_.strip() * 16 + row, __float_as_uint(residual_));
  }
  barrier_.stamp(8);
}

}  // namespace assay::cuda::fast::persistent
