// One block's way through a decode step.
#pragma once

#include "backends/cuda/fast/persistent_request.cuh"

namespace assay::cuda::fast::persistent {

__device__ inline void find_tasks(const Args& a, Turn turn, Tasks& tasks);

template <int kColumns>
class Step {
 public:
  __device__ Step(const Args& args, Shared<kColumns>& shared)
      : a_(args),
        s_(shared),
        warp_(threadIdx.x / 32),
        turn_{static_cast<int>(blockIdx.x), static_cast<int>(gridDim.x)},
        barrier_(args.counters, args.times),
        first_tag_(__ldcg(args.counters + 3) * kMostLayers + 1),
        board_(board_set(args, false)) {}

  __device__ void run() {
    if (warp_ == 0) {
      find_tasks(a_, turn_, s_.tasks);
      __syncwarp();
      if (threadIdx.x == 0) barrier_arrive(shared_address(&s_.ring.attended));
    }
#pragma unroll 1
    for (int layer = 0; layer < a_.layer_count; ++layer) {
      qkv(layer);
      attention(layer);
      projection(layer);
      up(layer);
      down(layer);
    }
    head();
    const int segments = vocabulary_segments(a_.vocabulary);
    barrier_.wait(6);
    for (int task = turn_.block; task < segments * a_.tokens; task += turn_.grid) {
      pick_segment(a_.pick, task % segments, task / segments, s_.pick);
      block_sync();
    }
    if (threadIdx.x == 0) {
      uint32_t* counters = a_.counters;
      if (add_acquire_release(counters + 2, 1) + 1 == gridDim.x) {
        counters[0] = counters[2] = 0;
        counters[1] = a_.tokens;
        counters[3] += 1;
      }
    }
  }

 private:
  __device__ void unit(const uint4 (&x)[2 * kStages], float* partial) {
    float sum[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    multiply_unit(s_.ring, sequence_ + warp_, x, sum);
    sequence_ += kWarps;
    store_partial<kColumns>(partial, sum);
  }
  __device__ uint32_t tag(int layer) const { return first_tag_ + layer; }
  __device__ float* partial(int in_round) { return s_.partials + (in_round * kWarps + warp_) * 16 * kColumns; }

  // Words of the board.
  __device__ uint32_t* words(int layer, int token, int place) const {
    return board_ + (static_cast<size_t>(layer) * a_.most_tokens + token) * a_.board_size + place;
  }
  // The norm of x from the board; the warp keeps its segment.
  __device__ void normed(const RmsNorm& norm, int layer, int place, uint4 (&pieces)[2 * kStages]) {
    normed(norm, layer, place);
    operand_pieces(s_.in.operand, operand_stride(kHidden), warp_ * kSegment, a_.tokens, pieces);
  }
  __device__ void normed(const RmsNorm& norm, int layer, int place) {
    block_sync();
    if constexpr (kColumns == 1) {
      norm.run_words(words(layer, 0, place), s_.in.raw, s_.in.operand, s_.in.norm);
    } else {
      norm.run_words(words(layer, 0, place), a_.board_size, a_.tokens, s_.in.operand, s_.in.norm);
    }
  }

  // `count` tiles with the operand x; finish(tile, row, column, sum).
  template <class Finish>
  __device__ void tiles(int count, const uint4 (&x)[2 * kStages], const Finish& finish);

  // The phases of a layer, and the end of the step.
  __device__ void qkv(int layer);
  __device__ void attention(int layer);
  __device__ void projection(int layer);
  __device__ void up(int layer);
  __device__ void down(int layer);
  __device__ void head();

  // Parts of attention.
  __device__ void attend(int layer, const Task& t);
  __device__ void take_heads(int layer, const Task& t);
  __device__ void score(const Task& t);
  __device__ void weigh(const Task& t);
  __device__ void add_values(int step, float (&sums)[4][4]);
  // Lane (head g, c) has channels 32 warp + 16 q + 4 c + i in sums[2 q + i % 2][i / 2].
  __device__ void leave(int layer, const Task& t, const float (&sums)[4][4]);
  __device__ void combine(int layer, int token, int head, int channel);

  // Two neighbouring rows of one token (`element`: row / 2 * kColumns + token) of tile `in_round` of the partials,
  // which is number `place` of the block's list.
  __device__ void choose(int layer);
  __device__ void stage(const uint32_t* from, int pieces);
  __device__ void activate(int layer, int in_round, int place, int shared, int element);

  const Args& a_;
  Shared<kColumns>& s_;
  int warp_;
  Turn turn_;
  Barrier barrier_;
  uint32_t first_tag_;
  uint32_t* board_;     // the set of this launch
  float residual_ = 0;  // of row threadIdx.x / kColumns of the block's strip, token threadIdx.x % kColumns
  int routings_ = 0;
  int sequence_ = 0;  // of the phase's first unit
};

template <int kColumns>
template <class Finish>
__device__ inline void Step<kColumns>::tiles(int count, const uint4 (&x)[2 * kStages], const Finish& finish) {
#pragma unroll 1
  for (int n = 0; n < count; ++n) {
    const int in_round = n % kRoundTiles;
    unit(x, partial(in_round));
    if (in_round + 1 == kRoundTiles || n + 1 == count) {
      block_sync();
      for (int i = threadIdx.x; i < (in_round + 1) * 16 * kColumns; i += kThreads) {
        const int tile = i / (16 * kColumns);
        const int element = i % (16 * kColumns);
        if (element % kColumns < a_.tokens) {
          finish(n - in_round + tile, element / kColumns, element % kColumns,
                 sum_segments<kColumns>(s_.partials + tile * kWarps * 16 * kColumns + element, kWarps));
        }
      }
      if (n + 1 < count) block_sync();
    }
  }
}

template <int kColumns>
__device__ inline void Step<kColumns>::qkv(int layer) {
  const RmsNorm norm(a_.layers[layer].attention_gamma, a_.eps);
  uint4 x[2 * kStages];
  if (layer > 0) {
    normed(norm, layer - 1, BoardPlaces::kX, x);
  } else {
    norm.run_embedded(a_.embeddings, a_.ids, a_.tokens, s_.in.operand, s_.in.norm);
    operand_pieces(s_.in.operand, operand_stride(kHidden), warp_ * kSegment, a_.tokens, x);
    const int row = threadIdx.x / kColumns;
    const int column = threadIdx.x % kColumns;
    if (turn_.strip() < kHidden / 16 && row < 16 && column < a_.tokens) {
      residual_ = embedded(a_.embeddings, __ldcg(a_.ids + column), turn_.strip() * 16 + row);
    }
  }
  barrier_.stamp(1);
  const int rows = a_.groups * (a_.heads_per_group + 2) * kHeadSize;
  tiles(count_tiles(turn_.qkv(), rows / 16, turn_.grid), x, [&](int tile, int row, int column, float sum) {
    store_word(words(layer, column, BoardPlaces::kQkv) + (turn_.qkv() + tile * turn_.grid) * 16 + row,
               __float_as_uint(sum));
  });
  barrier_.stamp(0);
}

template <int kColumns>
__device__ inline void Step<kColumns>::projection(int layer) {
  const int g = threadIdx.x % 32 / 4;
  if (turn_.strip() < kHidden / 16) {
    uint4 x[2 * kStages];
    if (g < a_.tokens) {
      wait_for_words(words(layer, g, BoardPlaces::kAttended) + warp_ * (kSegment / 2) + threadIdx.x % 4 * 4, 16, x);
    } else {
#pragma unroll
      for (int i = 0; i < 2 * kStages; ++i) x[i] = make_uint4(0, 0, 0, 0);
    }
    __syncwarp();
    barrier_.stamp(5);
    tiles(1, x, [&](int, int row, int column, float sum) {
      residual_ = __fadd_rn(residual_, sum);
      store_word(words(layer, column, BoardPlaces::kProjected) + turn_.strip() * 16 + row, __float_as_uint(residual_));
    });
  }
  barrier_.stamp(4);
}

template <int kColumns>
__device__ inline void Step<kColumns>::head() {
  normed(RmsNorm(a_.final_gamma, a_.eps), a_.layer_count - 1, BoardPlaces::kX);
  barrier_.stamp(11);
  const int tiles = a_.vocabulary / 16;
  float* logits = a_.logits;
#pragma unroll 1
  for (int first = turn_.block * kWarps; first < tiles; first += turn_.grid * kWarps) {
    float total[4] = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll 1
    for (int segment = 0; segment < kHidden / kSegment; ++segment) {
      uint4 x[2 * kStages];
      operand_pieces(s_.in.operand, operand_stride(kHidden), segment * kSegment, a_.tokens, x);
      float sum[4] = {0.0f, 0.0f, 0.0f, 0.0f};
      multiply_unit(s_.ring, sequence_ + warp_, x, sum);
      sequence_ += kWarps;
#pragma unroll
      for (int i = 0; i < 4; ++i) total[i] = __fadd_rn(total[i], sum[i]);
    }
    const int column = 2 * (threadIdx.x % 4);
    const int tile = first + warp_;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (tile < tiles && column + i % 2 < a_.tokens) {
        logits[static_cast<size_t>(column + i % 2) * a_.vocabulary + tile * 16 + threadIdx.x % 32 / 4 + i / 2 * 8] =
            round_bf16(total[i]);
      }
    }
  }
  barrier_.arrive(5);
}

}  // namespace assay::cuda::fast::persistent
