// Attention of the persistent kernel: a task is one split of one group of one token, done by a whole block. Keys and
// values of older positions come through the ring; those of the new position are put among them when they are there.
#pragma once

#include "backends/cuda/fast/persistent_tasks.cuh"

namespace assay::cuda::fast::persistent {

template <int kColumns>
__device__ inline void Step<kColumns>::attention(int layer) {
  block_sync();
  for (int n = 0; n < s_.tasks.count; ++n) attend(layer, s_.tasks.task[n]);
  barrier_.stamp(3);
  const int parts = kHeadSize / kCombined;
  for (int i = turn_.block; i < a_.tokens * (kHidden / kHeadSize) * parts; i += turn_.grid) {
    combine(layer, i / parts / (kHidden / kHeadSize), i / parts % (kHidden / kHeadSize), i % parts * kCombined);
  }
  barrier_.stamp(2);
}

// Scores of all positions of the split. Warp w has positions 8 (w + 8 j) + g.
template <int kColumns>
__device__ inline void Step<kColumns>::score(const Task& t) {
  AttentionShared& s = s_.attention;
  const int g = threadIdx.x % 32 / 4;
  const int c = threadIdx.x % 4;
  const bool odd = g % 2 != 0;
  uint4 query[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    query[i] =
        g < a_.heads_per_group ? *reinterpret_cast<const uint4*>(&s.query[g][32 * i + 8 * c]) : make_uint4(0, 0, 0, 0);
  }
  constexpr int kTiles = 2;  // side by side
#pragma unroll 1
  for (int begin = 8 * warp_; begin < t.count; begin += kTiles * 8 * kWarps) {
    uint32_t from[kTiles];
#pragma unroll
    for (int j = 0; j < kTiles; ++j) {
      const int first = begin + 8 * kWarps * j;
      const int unit = sequence_ + first / kUnitPositions;
      if (first < t.count) wait_for_unit(s_.ring, unit);
      from[j] = ring_unit(s_.ring, unit) + (first % kUnitPositions + g) * kKeyBytes + c * 16;
    }
    float score[kTiles][4] = {};  // of places behind the last position, too: they are not looked at
#pragma unroll
    for (int i = 0; i < 4; i += 2) {
#pragma unroll
      for (int j = 0; j < kTiles; ++j) {
        // Neighbouring positions lie in the same banks: every other one takes its pair of channels in turn.
        const uint4 early = load_shared(from[j] + (odd ? i + 1 : i) * 64);
        const uint4 late = load_shared(from[j] + (odd ? i : i + 1) * 64);
        const uint4 k[2] = {odd ? late : early, odd ? early : late};
#pragma unroll
        for (int n = 0; n < 2; ++n) {
          mma(score[j], make_uint4(query[i + n].x, 0, query[i + n].y, 0), k[n].x, k[n].y);
          mma(score[j], make_uint4(query[i + n].z, 0, query[i + n].w, 0), k[n].z, k[n].w);
        }
      }
    }
#pragma unroll
    for (int j = 0; j < kTiles; ++j) {
      if (g < a_.heads_per_group) {
        *reinterpret_cast<float2*>(&s.scores[g][begin + 8 * kWarps * j + 2 * c]) =
            make_float2(score[j][0], score[j][1]);
      }
    }
  }
  block_sync();
}

// Probabilities, a warp for each 64 positions of each head.
template <int kColumns>
__device__ inline void Step<kColumns>::weigh(const Task& t) {
  AttentionShared& s = s_.attention;
  const int lane = threadIdx.x % 32;
  constexpr int kBlocks = kSplit / kSubsplit;
  for (int i = warp_; i < a_.heads_per_group * kBlocks; i += kWarps) {
    const int r = i / kBlocks;
    const int block = i % kBlocks;
    if (block * kSubsplit >= t.count) continue;
    float top = -INFINITY;  // of all positions up to the end of the 64
    for (int at = 2 * lane; at < (block + 1) * kSubsplit; at += kSubsplit) {
      if (at < t.count) top = fmaxf(top, s.scores[r][at]);
      if (at + 1 < t.count) top = fmaxf(top, s.scores[r][at + 1]);
    }
#pragma unroll
    for (int d = 16; d > 0; d /= 2) top = fmaxf(top, __shfl_xor_sync(kWholeWarp, top, d));
    const int at = block * kSubsplit + 2 * lane;
    uint32_t high, low;
    split_probabilities(at < t.count ? probability(s.scores[r][at], top) : 0.0f,
                        at + 1 < t.count ? probability(s.scores[r][at + 1], top) : 0.0f, high, low);
    *reinterpret_cast<uint32_t*>(&s.high[r][at]) = high;
    *reinterpret_cast<uint32_t*>(&s.low[r][at]) = low;
    if (lane == 0) s.top[r][block] = top;
  }
  block_sync();
}

// The sums of 16 positions more. Warps 0 .. 3 have 32 channels each, 32 w + 16 q + 2 g (sums[2 q]) and + 1 (sums[2 q +
// 1]); warp 4 has the sum of the probabilities (sums[0]).
template <int kColumns>
__device__ inline void Step<kColumns>::add_values(int step, float (&sums)[4][4]) {
  AttentionShared& s = s_.attention;
  const int g = threadIdx.x % 32 / 4;
  const int c = threadIdx.x % 4;
  uint4 high = make_uint4(0, 0, 0, 0);
  uint4 low = make_uint4(0, 0, 0, 0);
  if (g < a_.heads_per_group) {
    high.x = *reinterpret_cast<const uint32_t*>(&s.high[g][16 * step + 2 * c]);
    high.z = *reinterpret_cast<const uint32_t*>(&s.high[g][16 * step + 8 + 2 * c]);
    low.x = *reinterpret_cast<const uint32_t*>(&s.low[g][16 * step + 2 * c]);
    low.z = *reinterpret_cast<const uint32_t*>(&s.low[g][16 * step + 8 + 2 * c]);
  }
  if (warp_ == kValueWarps) {
    mma(sums[0], high, kOnes, kOnes);
    mma(sums[0], low, kOnes, kOnes);
    return;
  }
  constexpr int kSteps = kUnitPositions / 16;
  const uint32_t from =
      ring_unit(s_.ring, sequence_ + step / kSteps) + (step % kSteps * 16 + 2 * c) * kKeyBytes + (16 * warp_ + g) * 4;
  const uint32_t mine = c % 2 * 32;  // lanes of neighbouring positions start with different banks
  uint32_t word[2][4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const uint32_t at = from + (i / 2 * 8 + i % 2) * kKeyBytes;
    const uint32_t early = load_shared_word(at + mine);
    const uint32_t late = load_shared_word(at + (mine ^ 32));
    word[0][i] = mine == 0 ? early : late;
    word[1][i] = mine == 0 ? late : early;
  }
#pragma unroll
  for (int q = 0; q < 2; ++q) {
    const uint32_t(&w)[4] = word[q];
    const uint32_t even[2] = {__byte_perm(w[0], w[1], 0x5410), __byte_perm(w[2], w[3], 0x5410)};
    const uint32_t odd[2] = {__byte_perm(w[0], w[1], 0x7632), __byte_perm(w[2], w[3], 0x7632)};
    mma(sums[2 * q], high, even[0], even[1]);
    mma(sums[2 * q + 1], high, odd[0], odd[1]);
    mma(sums[2 * q], low, even[0], even[1]);
    mma(sums[2 * q + 1], low, odd[0], odd[1]);
  }
}

template <int kColumns>
__device__ inline void Step<kColumns>::attend(int layer, const Task& t) {
  AttentionShared& s = s_.attention;
  take_heads(layer, t);
  score(t);
  const int units = t.units();
  if (static_cast<int>(threadIdx.x) < units) release_unit(s_.ring, sequence_ + threadIdx.x);
  sequence_ += units;
  weigh(t);
  const int g = threadIdx.x % 32 / 4;
  const bool head = g < a_.heads_per_group;
  float sums[4][4] = {};
  if (warp_ <= kValueWarps) {
    for (int i = 0; i < units; ++i) wait_for_unit(s_.ring, sequence_ + i);
    const int steps = (t.count + 15) / 16;
    constexpr int kSteps = kSubsplit / 16;
#pragma unroll 1
    for (int step = 0; step < steps; step += kSteps) {
      if (step > 0 && head) {
        const float by = rescale(s.top[g][step / kSteps - 1], s.top[g][step / kSteps]);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          sums[i][0] = __fmul_rn(sums[i][0], by);
          sums[i][1] = __fmul_rn(sums[i][1], by);
        }
      }
      if (step + kSteps <= steps) {
#pragma unroll
        for (int i = 0; i < kSteps; ++i) add_values(step + i, sums);
      } else {
#pragma unroll 1
        for (int i = step; i < steps; ++i) add_values(i, sums);
      }
    }
    if (warp_ == kValueWarps && threadIdx.x % 4 == 0 && head) s.ones[g] = sums[0][0];
  }
  block_sync();
  if (static_cast<int>(threadIdx.x) < units) release_unit(s_.ring, sequence_ + threadIdx.x);
  sequence_ += units;
  if (warp_ < kValueWarps && head) leave(layer, t, sums);
  block_sync();
}

// What a task found out, to the next blocks.
template <int kColumns>
__device__ inline void Step<kColumns>::leave(int layer, const Task& t, const float (&sums)[4][4]) {
  AttentionShared& s = s_.attention;
  const int g = threadIdx.x % 32 / 4;
  const int c = threadIdx.x % 4;
  const int head = t.group * a_.heads_per_group + g;
  const bool whole = t.position < kSplit;
#pragma unroll
  for (int q = 0; q < 2; ++q) {
    const int channel = 32 * warp_ + 16 * q + 4 * c;
    const float values[4] = {sums[2 * q][0], sums[2 * q + 1][0], sums[2 * q][1], sums[2 * q + 1][1]};
    if (whole) {
      uint32_t* y = words(layer, t.token, BoardPlaces::kAttended) + head * (kHeadSize / 2);
      const float sum = s.ones[g];
#pragma unroll
      for (int i = 0; i < 4; i += 2) {
        store_word(y + operand_place(channel + i) / 2,
                   two_bf16(attended(values[i], sum), attended(values[i + 1], sum)));
      }
      continue;
    }
    const size_t row = static_cast<size_t>(t.token) * (kHidden / kHeadSize) + head;
    uint64_t* y = a_.splits_tagged + (row * a_.splits + t.split) * kSplitNumbers;
#pragma unroll
    for (int i = 0; i < 4; ++i) store_tagged(y + channel + i, __float_as_uint(values[i]), tag(layer));
    if (channel == 0) {
      store_tagged(y + kHeadSize, __float_as_uint(s.top[g][(t.count - 1) / kSubsplit]), tag(layer));
      store_tagged(y + kHeadSize + 1, __float_as_uint(s.ones[g]), tag(layer));
    }
  }
}

}  // namespace assay::cuda::fast::persistent
