// Greedy choice over the vocabulary, by blocks that each have one segment of it.
#pragma once

#include "backends/cuda/fast/head.h"
#include "backends/cuda/fast/ptx.cuh"

namespace assay::cuda::fast {

constexpr float kLog2E = 1.4426950408889634f;

struct PickScratch {
  unsigned long long keys[kWarps];
  float numbers[kWarps];
  int chosen;
};

__device__ inline unsigned long long best_key(float logit, int id) {
  const uint32_t bits = __float_as_uint(logit);
  const uint32_t key = logit != logit ? 0 : bits & 0x80000000u ? ~bits : bits | 0x80000000u;
  return static_cast<unsigned long long>(key) << 32 | ~static_cast<uint32_t>(id);
}

// One segment of one token's logits. The block that comes last puts the segments together (largest logit, every sum
// scaled to it, lane s of a warp the segments s, s + 32, ..., tree over the lanes) and prepares the next step.
__device__ inline void pick_segment(const PickArgs& args, int segment, int token, PickScratch& scratch) {
  constexpr int kEach = kVocabularySegment / kThreads;  // logits a thread
  static_assert(kEach == 16);
  const int segments = args.vocabulary / kVocabularySegment;
  const int begin = segment * kVocabularySegment + threadIdx.x * kEach;
  const char* from = static_cast<const char*>(args.logits) + (static_cast<size_t>(token) * args.vocabulary + begin) * 2;
  float v[kEach];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const uint4 raw = __ldcg(reinterpret_cast<const uint4*>(from) + half);
    const uint32_t words[4] = {raw.x, raw.y, raw.z, raw.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      v[half * 8 + 2 * i] = __uint_as_float(words[i] << 16);
      v[half * 8 + 2 * i + 1] = __uint_as_float(words[i] & 0xffff0000u);
    }
  }
  unsigned long long best = 0;
  float top = v[0];
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    best = max(best, best_key(v[i], begin + i));
    top = fmaxf(top, v[i]);
  }
#pragma unroll
  for (int d = 16; d > 0; d /= 2) {
    best = max(best, __shfl_xor_sync(0xffffffffu, best, d));
    top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, d));
  }
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  if (lane == 0) {
    scratch.keys[warp] = best;
    scratch.numbers[warp] = top;
  }
  block_sync();
  best = scratch.keys[0];
  top = scratch.numbers[0];
#pragma unroll
  for (int i = 1; i < kWarps; ++i) {
    best = max(best, scratch.keys[i]);
    top = fmaxf(top, scratch.numbers[i]);
  }
  block_sync();
  float sum = 0.0f;
#pragma unroll
  for (int i = 0; i < kEach; ++i) sum = __fadd_rn(sum, power_of_two(__fmul_rn(__fsub_rn(v[i], top), kLog2E)));
#pragma unroll
  for (int d = 16; d > 0; d /= 2) sum = __fadd_rn(sum, __shfl_xor_sync(0xffffffffu, sum, d));
  if (lane == 0) scratch.numbers[warp] = sum;
  block_sync();
  SegmentResult* all = args.segments + token * segments;
  if (threadIdx.x == 0) {
    sum = scratch.numbers[0];
    for (int i = 1; i < kWarps; ++i) sum = __fadd_rn(sum, scratch.numbers[i]);
    all[segment] = {best, top, sum};
    const bool last = add_acquire_release(args.tickets + token, 1) + 1 == static_cast<uint32_t>(segments);
    scratch.chosen = last ? 0 : -1;
    if (last) args.tickets[token] = 0;
  }
  block_sync();
  if (scratch.chosen < 0) return;
  if (warp == 0) {
    best = 0;
    top = -INFINITY;
    for (int s = lane; s < segments; s += 32) {
      best = max(best, __ldcg(&all[s].best));
      top = fmaxf(top, __ldcg(&all[s].top));
    }
#pragma unroll
    for (int d = 16; d > 0; d /= 2) {
      best = max(best, __shfl_xor_sync(0xffffffffu, best, d));
      top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, d));
    }
    sum = 0.0f;
    for (int s = lane; s < segments; s += 32) {
      sum = __fmaf_rn(__ldcg(&all[s].sum), power_of_two(__fmul_rn(__fsub_rn(__ldcg(&all[s].top), top), kLog2E)), sum);
    }
#pragma unroll
    for (int d = 16; d > 0; d /= 2) sum = __fadd_rn(sum, __shfl_xor_sync(0xffffffffu, sum, d));
    if (lane == 0) {
      const uint32_t key = static_cast<uint32_t>(best >> 32);
      const float logit = __uint_as_float(key & 0x80000000u ? key & 0x7fffffffu : ~key);
      scratch.chosen = static_cast<int>(~static_cast<uint32_t>(best));
      args.logprobs[token] = __fsub_rn(__fsub_rn(logit, top), logf(sum));
      args.ids[token] = scratch.chosen;
      args.positions[token] += 1;
    }
  }
  block_sync();
  const bf16* row = static_cast<const bf16*>(args.embeddings) + static_cast<size_t>(scratch.chosen) * kHidden;
#pragma unroll
  for (int i = threadIdx.x; i < kHidden; i += kThreads) {
    args.x[static_cast<size_t>(token) * kHidden + i] = __bfloat162float(row[i]);
  }
}

}  // namespace assay::cuda::fast
