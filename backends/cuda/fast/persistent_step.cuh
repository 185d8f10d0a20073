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
        chosen_(args.chosen),
        margins_(args.margins) {}

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

  // The norm of tagged x, of which the warp keeps its segment.
  __device__ void normed(const RmsNorm& norm, const uint64_t* x, uint32_t x_tag, uint4 (&pieces)[2 * kStages]) {
    block_sync();
    norm.run(x, x_tag, a_.tokens, s_.in.operand, s_.in.norm);
    operand_pieces(s_.in.operand, operand_stride(kHidden), warp_ * kSegment, a_.tokens, pieces);
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
  // Lane (head g, c) has channels 32 warp + 16 q + 4 c + i in sums[2 q + i % 2][i / 2].
  __device__ void leave(int layer, const Task& t, const float (&sums)[4][4]);
  __device__ void combine(int layer, int token, int head, int channel);

  // Two neighbouring rows of one token (`element`: row / 2 * kColumns + token) of tile `in_round` of the partials,
  // which is number `place` of the block's list.
  __device__ void activate(int layer, int in_round, int place, int shared, int element);

  const Args& a_;
  Shared<kColumns>& s_;
  int warp_;
  Turn turn_;
  Barrier barrier_;
  uint32_t first_tag_;
  uint16_t* chosen_;  // of the layer
  float* margins_;
  int sequence_ = 0;  // of the phase's first unit
};

template <int kColumns>
template <class Finish>
__device__ inline void Step<kColumns>::tiles(int count, const uint4 (&x)[2 * kStages], const Finish& finish) {
#pragma unroll 1
  for (int n = 0; n < count; ++n) {
    const int in_round = n % kRoundTiles<kColumns>;
    unit(x, partial(in_round));
    if (in_round + 1 == kRoundTiles<kColumns> || n + 1 == count) {
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
    normed(norm, a_.tagged.x, tag(layer - 1), x);
  } else {
    norm.run_embedded(a_.embeddings, a_.ids, a_.tokens, s_.in.operand, s_.in.norm);
    operand_pieces(s_.in.operand, operand_stride(kHidden), warp_ * kSegment, a_.tokens, x);
  }
  barrier_.stamp(1);
  const int rows = a_.groups * (a_.heads_per_group + 2) * kHeadSize;
  tiles(count_tiles(turn_.qkv(), rows / 16, turn_.grid), x, [&](int tile, int row, int column, float sum) {
    store_tagged(a_.tagged.qkv + static_cast<size_t>(column) * rows + (turn_.qkv() + tile * turn_.grid) * 16 + row,
                 __float_as_uint(sum), tag(layer));
  });
  barrier_.stamp(0);
}

template <int kColumns>
__device__ inline void Step<kColumns>::projection(int layer) {
  const int g = threadIdx.x % 32 / 4;
  const bool mine = turn_.strip() < kHidden / 16;
  if (mine) {
    const uint64_t* from =
        a_.tagged.attended + static_cast<size_t>(g) * (kHidden / 2) + warp_ * (kSegment / 2) + threadIdx.x % 4 * 4;
    uint4 x[2 * kStages];
    bool there = g >= a_.tokens;
    while (!there) there = load_tagged(from, tag(layer), x[0].x);
    do {
      there = true;
#pragma unroll
      for (int i = 0; i < 2 * kStages; ++i) {
        x[i] = make_uint4(0, 0, 0, 0);
        if (g < a_.tokens) {
          there &= load_tagged(from + 16 * i, tag(layer), x[i].x, x[i].y);
          there &= load_tagged(from + 16 * i + 2, tag(layer), x[i].z, x[i].w);
        }
      }
    } while (!there);
    __syncwarp();
    barrier_.stamp(5);
    tiles(1, x, [&](int, int row, int column, float sum) {
      float* to = a_.buffers.x + static_cast<size_t>(column) * kHidden + turn_.strip() * 16 + row;
      const float before =
          layer > 0 ? __ldcg(to) : embedded(a_.embeddings, __ldcg(a_.ids + column), turn_.strip() * 16 + row);
      const float now = __fadd_rn(before, sum);
      *to = now;
      store_tagged(a_.tagged.projected + static_cast<size_t>(column) * kHidden + turn_.strip() * 16 + row,
                   __float_as_uint(now), tag(layer));
    });
  }
  barrier_.stamp(4);
}

template <int kColumns>
__device__ inline void Step<kColumns>::head() {
  const RmsNorm norm(a_.final_gamma, a_.eps);
  block_sync();
  norm.run(a_.tagged.x, tag(a_.layer_count - 1), a_.tokens, s_.in.operand, s_.in.norm);
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
