// What is said about rows of logits, by blocks that each have one segment of a row: the arithmetic and the order of
// kernels/vocabulary.cu.
#pragma once

#include "backends/cuda/fast/head.h"
#include "backends/cuda/fast/ptx.cuh"
#include "backends/cuda/kernels/device_math.cuh"

namespace assay::cuda::fast {

struct Best {
  float value;
  int32_t id;
};
__device__ inline Best better_of(Best a, Best b) {
  return b.value > a.value || (b.value == a.value && b.id < a.id) ? b : a;
}
__device__ inline Best best_of_warp(Best best) {
#pragma unroll
  for (int d = 16; d > 0; d /= 2) {
    best = better_of(best, {__shfl_xor_sync(kWholeWarp, best.value, d), __shfl_xor_sync(kWholeWarp, best.id, d)});
  }
  return best;
}

struct PickScratch {
  Best best[kWarps];
  uint32_t rank[kWarps];
  float lanes[kThreads];
  bool last;
};

// The segments of a row put together, by the first warp.
__device__ inline void finish_row(const PickArgs& args, int token) {
  const int lane = threadIdx.x;
  const int segments = vocabulary_segments(args.vocabulary);
  const SegmentResult* all = args.segments + token * segments;
  // A NaN at the head of the row stays the largest; others are never larger.
  Best best = {__ldcg(&all[0].top), __ldcg(&all[0].argmax)};
  uint32_t rank = 0;
  for (int s = lane; s < segments; s += 32) {
    if (best.value == best.value) best = better_of(best, {__ldcg(&all[s].top), __ldcg(&all[s].argmax)});
    rank += static_cast<uint32_t>(__ldcg(&all[s].rank));
  }
  best = best_of_warp(best);
  rank = __reduce_add_sync(kWholeWarp, rank);
  float total = 0.0f;
  for (int first = 0; first < segments; first += 32) {
    const bool mine = first + lane < segments;
    const float sum = mine ? __ldcg(&all[first + lane].total) : 0.0f;
    const float scale = mine ? exponential(__fsub_rn(__ldcg(&all[first + lane].top), best.value)) : 0.0f;
    for (int i = 0; i < min(32, segments - first); ++i) {
      total = __fmaf_rn(__shfl_sync(kWholeWarp, sum, i), __shfl_sync(kWholeWarp, scale, i), total);
    }
  }
  if (lane != 0) return;
  const int target = args.targets == nullptr ? -1 : __ldcg(args.targets + token);
  args.facts[token] = {
      .top = best.value,
      .total = total,
      .target = target < 0 ? 0.0f : __ldcg(args.logits + static_cast<size_t>(token) * args.vocabulary + target),
      .argmax = best.id,
      .rank = static_cast<int32_t>(rank)};
  if (args.advance) {
    args.ids[token] = best.id;
    args.positions[token] += 1;
  }
}

// One segment of one row; the block that comes last to a row finishes it.
__device__ inline void pick_segment(const PickArgs& args, int segment, int token, PickScratch& scratch) {
  constexpr int kEach = kVocabularySegment / kThreads;
  const int begin = segment * kVocabularySegment;
  const int count = min(kVocabularySegment, args.vocabulary - begin);
  const float* row = args.logits + static_cast<size_t>(token) * args.vocabulary;
  const float* logits = row + begin;
  const int warp = threadIdx.x / 32;
  const int first = threadIdx.x / 16 * kSegment + threadIdx.x % 16;
  const int target = args.targets == nullptr ? -1 : __ldcg(args.targets + token);
  const float wanted = target < 0 ? 0.0f : __ldcg(row + target);
  float v[kEach];
#pragma unroll
  for (int i = 0; i < kEach; ++i) v[i] = first + 16 * i < count ? __ldcg(logits + first + 16 * i) : -INFINITY;
  Best best = {__ldcg(logits), 0};
  uint32_t rank = 0;
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const int at = first + 16 * i;
    if (at < count && best.value == best.value) best = better_of(best, {v[i], at});
    const int id = begin + at;
    if (at < count && target >= 0 && (id < target ? v[i] >= wanted : id > target && v[i] > wanted)) ++rank;
  }
  best = best_of_warp(best);
  rank = __reduce_add_sync(kWholeWarp, rank);
  if (threadIdx.x % 32 == 0) {
    scratch.best[warp] = best;
    scratch.rank[warp] = rank;
  }
  block_sync();
#pragma unroll
  for (int w = 0; w < kWarps; ++w) best = better_of(best, scratch.best[w]);
  float acc = 0.0f;
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    if (first + 16 * i < count) acc = __fmaf_rn(1.0f, exponential(__fsub_rn(v[i], best.value)), acc);
  }
  scratch.lanes[threadIdx.x] = acc;
  block_sync();
  if (warp == 0) {
    float total = 0.0f;
#pragma unroll
    for (int block = 0; block < kThreads / 16; ++block) {
      total = __fadd_rn(total, scratch.lanes[block * 16 + threadIdx.x % 16]);
    }
    total = tree_sum(total);
    if (threadIdx.x == 0) {
      const int segments = vocabulary_segments(args.vocabulary);
      rank = 0;
      for (int w = 0; w < kWarps; ++w) rank += scratch.rank[w];
      args.segments[token * segments + segment] = {best.value, total, begin + best.id, static_cast<int32_t>(rank)};
      scratch.last = add_acquire_release(args.tickets + token, 1) + 1 == static_cast<uint32_t>(segments);
      if (scratch.last) args.tickets[token] = 0;
    }
  }
  block_sync();
  if (scratch.last && warp == 0) finish_row(args, token);
}

}  // namespace assay::cuda::fast
