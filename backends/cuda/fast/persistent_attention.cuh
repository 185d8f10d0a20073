// Attention of the persistent kernel: a task is one split of one group of one token, done by a whole block.
#pragma once

#include "backends/cuda/fast/persistent_step.cuh"

namespace assay::cuda::fast::persistent {

template <int kColumns>
__device__ inline bool Step<kColumns>::find(int index, Task& t) const {
  t.split = index % a_.splits;
  t.group = index / a_.splits % a_.groups;
  t.token = index / a_.splits / a_.groups;
  if (t.token >= a_.tokens) return false;
  t.position = __ldcg(a_.positions + t.token);
  const int begin = t.split * kSplit;
  t.count = min(kSplit, t.position + 1 - begin);
  t.newest = begin + t.count == t.position + 1;
  t.old = t.newest ? t.count - 1 : t.count;
  return true;
}

template <int kColumns>
__device__ inline void Step<kColumns>::load(int layer, const Task& t, Keys& kv) {
  AttentionShared& s = s_.attention;
  if (threadIdx.x < kSplit / 16) {
    const int at = t.split * kSplit + threadIdx.x * 16;
    const int block = at / a_.cache.block_size;
    if (static_cast<int>(threadIdx.x) * 16 < t.count) {
      const int32_t where = a_.cache.blocks[a_.cache.tables[t.token] + block];
      s.place[threadIdx.x] =
          layer * a_.layer_bytes + ((static_cast<size_t>(where) * a_.groups + t.group) * a_.cache.block_size +
                                    (at - block * a_.cache.block_size)) *
                                       kHeadSize * 2;
    }
  }
  block_sync();
  const int g = threadIdx.x % 32 / 4;
  const int c = threadIdx.x % 4;
#pragma unroll
  for (int j = 0; j < kSplit / 8 / kWarps; ++j) {
    const int at = 8 * (warp_ + kWarps * j) + g;
    const char* from = static_cast<const char*>(a_.cache.keys) + s.place[at / 16] + at % 16 * (kHeadSize * 2) + c * 16;
#pragma unroll
    for (int i = 0; i < 4; ++i) kv.keys[j][i] = at < t.old ? load_global(from + 64 * i) : make_uint4(0, 0, 0, 0);
  }
}

template <int kColumns>
__device__ inline void Step<kColumns>::prefetch_values(const Task& t) const {
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int at = threadIdx.x / 2 + i * (kThreads / 2);
    if (at < t.old) {
      prefetch_line(static_cast<const char*>(a_.cache.values) + s_.attention.place[at / 16] +
                    at % 16 * (kHeadSize * 2) + threadIdx.x % 2 * 128);
    }
  }
}

template <int kColumns>
__device__ inline void Step<kColumns>::load_values(const Task& t, uint4 (&values)[kSplit / 16]) const {
#pragma unroll
  for (int j = 0; j < kSplit / 16; ++j) {
    const int row = threadIdx.x / 16;
    const char* from = static_cast<const char*>(a_.cache.values) + s_.attention.place[j] + row * (kHeadSize * 2) +
                       threadIdx.x % 16 * 16;
    values[j] = 16 * j + row < t.old ? load_global(from) : make_uint4(0, 0, 0, 0);
  }
}

template <int kColumns>
__device__ inline void Step<kColumns>::attention(int layer) {
  Task t;
  Keys kv;
  int index = turn_.block;
  bool mine = find(index, t);
  block_sync();
  if (mine && t.count > 0) {
    load(layer, t, kv);
    prefetch_values(t);
  }
  barrier_.stamp(3);
  while (mine) {
    Task next;
    index += turn_.grid;
    mine = find(index, next);
    if (t.count > 0) {
      attend(layer, t, kv, next, mine && next.count > 0);
    } else if (mine && next.count > 0) {
      load(layer, next, kv);
    }
    t = next;
  }
  barrier_.stamp(2);
}

template <int kColumns>
__device__ inline void Step<kColumns>::attend(int layer, const Task& t, Keys& kv, const Task& next, bool more) {
  AttentionShared& s = s_.attention;
  const int lane = threadIdx.x % 32;
  const int g = lane / 4;
  const int c = lane % 4;
  const int per_group = a_.heads_per_group;
  const float* turns = a_.rotary + static_cast<size_t>(t.position) * kHeadSize + 2 * lane;
  const float2 cosine = *reinterpret_cast<const float2*>(turns);
  const float2 sine = *reinterpret_cast<const float2*>(turns + kHeadSize / 2);
  const uint64_t* rows =
      a_.tagged.qkv + (static_cast<size_t>(t.token) * a_.groups + t.group) * (per_group + 2) * kHeadSize;
  for (int r = warp_; r < per_group + (t.newest ? 2 : 0); r += kWarps) {
    uint32_t words[4];
    const uint64_t* row = rows + r * kHeadSize + 2 * lane;
    while (!(load_tagged(row, tag(layer), words[0], words[1]) &
             load_tagged(row + kHeadSize / 2, tag(layer), words[2], words[3]))) {
    }
    float2 p = make_float2(__uint_as_float(words[0]), __uint_as_float(words[2]));
    float2 q = make_float2(__uint_as_float(words[1]), __uint_as_float(words[3]));
    if (r <= per_group) {
      p = rotate(p, cosine.x, sine.x);
      q = rotate(q, cosine.y, sine.y);
    }
    const uint32_t first = pack(__float2bfloat16_rn(p.x), __float2bfloat16_rn(q.x));
    const uint32_t second = pack(__float2bfloat16_rn(p.y), __float2bfloat16_rn(q.y));
    bf16* to = r < per_group ? s.query[r] : r == per_group ? s.key : s.value;
    reinterpret_cast<uint32_t*>(to)[lane] = first;
    reinterpret_cast<uint32_t*>(to)[lane + 32] = second;
    if (r >= per_group) {
      char* stored = static_cast<char*>(r == per_group ? a_.cache.keys : a_.cache.values) + s.place[t.old / 16] +
                     t.old % 16 * (kHeadSize * 2);
      reinterpret_cast<uint32_t*>(stored)[lane] = first;
      reinterpret_cast<uint32_t*>(stored)[lane + 32] = second;
    }
  }
  block_sync();

  uint4 query[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    query[i] = g < per_group ? *reinterpret_cast<const uint4*>(&s.query[g][32 * i + 8 * c]) : make_uint4(0, 0, 0, 0);
  }
#pragma unroll
  for (int j = 0; j < kSplit / 8 / kWarps; ++j) {
    const int first = 8 * (warp_ + kWarps * j);
    if (first < t.count) {
      float score[4] = {0.0f, 0.0f, 0.0f, 0.0f};
      const bool here = t.newest && first + g == t.old;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const uint4 k = here ? *reinterpret_cast<const uint4*>(&s.key[32 * i + 8 * c]) : kv.keys[j][i];
        mma(score, make_uint4(query[i].x, 0, query[i].y, 0), k.x, k.y);
        mma(score, make_uint4(query[i].z, 0, query[i].w, 0), k.z, k.w);
      }
      if (g < per_group) *reinterpret_cast<float2*>(&s.scores[g][first + 2 * c]) = make_float2(score[0], score[1]);
    }
  }
  block_sync();

  uint4 values[kSplit / 16];
  load_values(t, values);
  for (int r = warp_; r < per_group; r += kWarps) {
    float top = -INFINITY;
#pragma unroll
    for (int block = 0; block < kSplit / kSubsplit; ++block) {
      const int at = block * kSubsplit + 2 * lane;
      if (block * kSubsplit < t.count) {
        float2 score = make_float2(-INFINITY, -INFINITY);
        if (at < t.count) score.x = s.scores[r][at];
        if (at + 1 < t.count) score.y = s.scores[r][at + 1];
        float larger = fmaxf(score.x, score.y);
#pragma unroll
        for (int d = 16; d > 0; d /= 2) larger = fmaxf(larger, __shfl_xor_sync(0xffffffffu, larger, d));
        top = fmaxf(top, larger);
        uint32_t high, low;
        split_probabilities(at < t.count ? probability(score.x, top) : 0.0f,
                            at + 1 < t.count ? probability(score.y, top) : 0.0f, high, low);
        *reinterpret_cast<uint32_t*>(&s.high[r][at]) = high;
        *reinterpret_cast<uint32_t*>(&s.low[r][at]) = low;
      }
      if (lane == 0) s.top[r][block] = top;
    }
  }
  block_sync();

  float sums[2][4] = {};
  float ones[4] = {};
  const uint32_t matrix = shared_address(s.values) + (lane % 16) * kValueRow + warp_ * 32 + lane / 16 * 16;
#pragma unroll
  for (int block = 0; block < kSplit / kSubsplit; ++block) {
    if (block * kSubsplit < t.count) {
      if (block > 0) block_sync();
      const int row = threadIdx.x / 16;
#pragma unroll
      for (int j = 0; j < kSubsplit / 16; ++j) {
        const bool here = t.newest && block * kSubsplit + 16 * j + row == t.old;
        *reinterpret_cast<uint4*>(s.values + (16 * j + row) * kValueRow + threadIdx.x % 16 * 16) =
            here ? *reinterpret_cast<const uint4*>(s.value + threadIdx.x % 16 * 8) : values[4 * block + j];
      }
      block_sync();
      if ((block + 1) * kSubsplit >= t.count && more) {
        load(layer, next, kv);
        prefetch_values(next);
      }
      if (block > 0 && g < per_group) {
        const float by = rescale(s.top[g][block - 1], s.top[g][block]);
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          sums[0][i] = __fmul_rn(sums[0][i], by);
          sums[1][i] = __fmul_rn(sums[1][i], by);
          ones[i] = __fmul_rn(ones[i], by);
        }
      }
#pragma unroll
      for (int j = 0; j < kSubsplit / 16; ++j) {
        const int step = 4 * block + j;
        if (16 * step < t.count) {
          uint4 high = make_uint4(0, 0, 0, 0);
          uint4 low = make_uint4(0, 0, 0, 0);
          if (g < per_group) {
            high.x = *reinterpret_cast<const uint32_t*>(&s.high[g][16 * step + 2 * c]);
            high.z = *reinterpret_cast<const uint32_t*>(&s.high[g][16 * step + 8 + 2 * c]);
            low.x = *reinterpret_cast<const uint32_t*>(&s.low[g][16 * step + 2 * c]);
            low.z = *reinterpret_cast<const uint32_t*>(&s.low[g][16 * step + 8 + 2 * c]);
          }
          const uint4 v = load_matrices_transposed(matrix + j * 16 * kValueRow);
          mma(sums[0], high, v.x, v.y);
          mma(sums[0], low, v.x, v.y);
          mma(sums[1], high, v.z, v.w);
          mma(sums[1], low, v.z, v.w);
          mma(ones, high, kOnes, kOnes);
          mma(ones, low, kOnes, kOnes);
        }
      }
    }
  }
  finish_attention(t, tag(layer), sums, ones[0]);
}

template <int kColumns>
__device__ inline void Step<kColumns>::finish_attention(const Task& t, uint32_t now, const float (&sums)[2][4],
                                                        float ones) {
  AttentionShared& s = s_.attention;
  const int g = threadIdx.x % 32 / 4;
  const int c = threadIdx.x % 4;
  const int per_group = a_.heads_per_group;
  const int splits = t.position / kSplit + 1;
  const int heads = a_.groups * per_group;
  const int first_head = t.group * per_group;
  const int channel = 16 * warp_ + 2 * c;
  if (splits == 1) {
    if (g < per_group) {
      uint64_t* y = a_.tagged.attended + (static_cast<size_t>(t.token) * heads + first_head + g) * (kHeadSize / 2);
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        store_tagged(
            y + operand_place(channel + 8 * i) / 2,
            pack(__float2bfloat16_rn(__fdiv_rn(sums[i][0], ones)), __float2bfloat16_rn(__fdiv_rn(sums[i][1], ones))),
            now);
      }
    }
    return;
  }
  if (g < per_group) {
    SplitResult& mine =
        a_.buffers.splits[(static_cast<size_t>(t.token) * heads + first_head + g) * a_.splits + t.split];
    *reinterpret_cast<float2*>(&mine.values[channel]) = make_float2(sums[0][0], sums[0][1]);
    *reinterpret_cast<float2*>(&mine.values[channel + 8]) = make_float2(sums[1][0], sums[1][1]);
    if (warp_ == 0 && c == 0) {
      mine.top = s.top[g][(t.count - 1) / kSubsplit];
      mine.sum = ones;
    }
  }
  block_sync();
  if (threadIdx.x == 0) {
    uint32_t* ticket = a_.attention_tickets + t.token * a_.groups + t.group;
    s.last = add_acquire_release(ticket, 1) + 1 == static_cast<uint32_t>(splits);
    if (s.last) *ticket = 0;
  }
  block_sync();
  if (!s.last) return;
  for (int i = threadIdx.x; i < per_group * (kHeadSize / 2); i += kThreads) {
    const int at_channel = i % (kHeadSize / 2) * 2;
    const size_t at = static_cast<size_t>(t.token) * heads + first_head + i / (kHeadSize / 2);
    const SplitResult* from = a_.buffers.splits + at * a_.splits;
    float top = __ldcg(&from[0].top);
    float sum = __ldcg(&from[0].sum);
    float2 value = __ldcg(reinterpret_cast<const float2*>(&from[0].values[at_channel]));
#pragma unroll 4
    for (int k = 1; k < splits; ++k) {
      const float its_top = __ldcg(&from[k].top);
      const float its_sum = __ldcg(&from[k].sum);
      const float2 its_value = __ldcg(reinterpret_cast<const float2*>(&from[k].values[at_channel]));
      const float larger = fmaxf(top, its_top);
      const float by = rescale(top, larger);
      const float its_by = rescale(its_top, larger);
      sum = __fmaf_rn(its_sum, its_by, __fmul_rn(sum, by));
      value.x = __fmaf_rn(its_value.x, its_by, __fmul_rn(value.x, by));
      value.y = __fmaf_rn(its_value.y, its_by, __fmul_rn(value.y, by));
      top = larger;
    }
    store_tagged(a_.tagged.attended + (at * kHeadSize + operand_place(at_channel)) / 2,
                 pack(__float2bfloat16_rn(__fdiv_rn(value.x, sum)), __float2bfloat16_rn(__fdiv_rn(value.y, sum))), now);
  }
}

}  // namespace assay::cuda::fast::persistent
