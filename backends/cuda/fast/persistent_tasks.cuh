// Attention of the persistent kernel, before its scores: which tasks a block has, and the heads of the new tokens.
#pragma once

#include "backends/cuda/fast/persistent_step.cuh"

namespace assay::cuda::fast::persistent {

// By one warp, once: which tasks the block has, and where their positions are in the cache.
__device__ inline void find_tasks(const Args& a, Turn turn, Tasks& tasks) {
  const int lane = threadIdx.x % 32;
  const int rows = a.tokens * a.groups;
  int count = 0;
  for (int n = 0; n < kMostTasks && turn.task(n) < rows * a.splits; ++n) {
    Task t;
    t.split = turn.task(n) / rows;
    t.token = turn.task(n) % rows / a.groups;
    t.group = turn.task(n) % a.groups;
    t.position = __ldcg(a.positions + t.token);
    const int begin = t.split * kSplit;
    t.count = min(kSplit, t.position + 1 - begin);
    if (t.count <= 0) continue;
    Task& to = tasks.task[count++];
    const int at = begin + lane * 16;
    if (lane < kSplit / 16 && lane * 16 < t.count) {
      const int block = __ldcg(a.cache.blocks + __ldcg(a.cache.tables + t.token) + at / a.cache.block_size);
      to.rows[lane] =
          (static_cast<uint32_t>(block) * a.groups + t.group) * a.cache.block_size + at % a.cache.block_size;
    }
    if (lane == 0) {
      to.split = t.split;
      to.token = t.token;
      to.group = t.group;
      to.position = t.position;
      to.count = t.count;
    }
  }
  if (lane == 0) tasks.count = count;
}

// The group's queries, rotated, to shared memory; the block of the newest position has its key and value, too.
template <int kColumns>
__device__ inline void Step<kColumns>::take_heads(int layer, const Task& t) {
  const int lane = threadIdx.x % 32;
  const int per_group = a_.heads_per_group;
  const float* turns = a_.rotary + static_cast<size_t>(t.position) * kHeadSize + 2 * lane;
  const float2 cosine = *reinterpret_cast<const float2*>(turns);
  const float2 sine = *reinterpret_cast<const float2*>(turns + kHeadSize / 2);
  const uint32_t* rows = words(layer, t.token, BoardPlaces::kQkv) + t.group * (per_group + 2) * kHeadSize;
  const bool newest = t.newest();
  for (int r = warp_; r < per_group + (newest ? 2 : 0); r += kWarps) {
    uint32_t w[4];
    const uint32_t* row = rows + r * kHeadSize + 2 * lane;
    while (!(load_words(row, w[0], w[1]) & load_words(row + kHeadSize / 2, w[2], w[3]))) {
    }
    float2 p = make_float2(__uint_as_float(w[0]), __uint_as_float(w[2]));
    float2 q = make_float2(__uint_as_float(w[1]), __uint_as_float(w[3]));
    if (r <= per_group) {
      p = rotate(p, cosine.x, sine.x);
      q = rotate(q, cosine.y, sine.y);
    }
    const uint32_t first = pack(__float2bfloat16_rn(p.x), __float2bfloat16_rn(q.x));
    const uint32_t second = pack(__float2bfloat16_rn(p.y), __float2bfloat16_rn(q.y));
    __syncwarp();
    if (r < per_group) {
      uint32_t* to = reinterpret_cast<uint32_t*>(s_.attention.query[r]);
      to[lane] = first;
      to[lane + 32] = second;
      continue;
    }
    const int old = t.count - 1;
    const bool value = r > per_group;
    uint32_t* stored = reinterpret_cast<uint32_t*>(static_cast<char*>(value ? a_.cache.values : a_.cache.keys) +
                                                   layer * a_.layer_bytes +
                                                   (static_cast<size_t>(t.rows[old / 16]) + old % 16) * kKeyBytes);
    stored[lane] = first;
    stored[lane + 32] = second;
    const int unit = sequence_ + (value ? t.units() : 0) + old / kUnitPositions;
    wait_for_unit(s_.ring, unit);
    uint32_t to = ring_unit(s_.ring, unit) + old % kUnitPositions * kKeyBytes + lane * 4;
    store_shared_word(to, first);
    store_shared_word(to + 128, second);
    for (int at = t.count; value && at % 16 != 0; ++at) {  // their probability is 0, but 0 times NaN is not
      to += kKeyBytes;
      store_shared_word(to, 0);
      store_shared_word(to + 128, 0);
    }
    order_before_copies();
  }
  block_sync();
}

}  // namespace assay::cuda::fast::persistent
