// The splits of attention put together.
#pragma once

#include "backends/cuda/fast/persistent_attention.cuh"

namespace assay::cuda::fast::persistent {

// Channels [channel, channel + kCombined) of one head of one token, by its splits ascending.
template <int kColumns>
__device__ inline void Step<kColumns>::combine(int layer, int token, int head, int channel) {
  CombineShared& s = s_.combine;
  const int lane = threadIdx.x % 32;
  const int splits = __ldcg(a_.positions + token) / kSplit + 1;
  if (splits == 1) return;
  const size_t row = static_cast<size_t>(token) * (kHidden / kHeadSize) + head;
  const uint64_t* from = a_.splits_tagged + row * a_.splits * kSplitNumbers;
  float top = -INFINITY;
  float sum = 0.0f;
  float value = 0.0f;
#pragma unroll 1
  for (int first = 0; first < splits; first += kRoundSplits) {
    const int count = min(kRoundSplits, splits - first);
    for (int k = warp_; k < count; k += kWarps) {
      const uint64_t* split = from + (first + k) * kSplitNumbers;
      uint32_t word;
      while (!load_tagged(split + channel + lane, tag(layer), word)) {
      }
      s.values[k][lane] = __uint_as_float(word);
      if (lane < 2) {
        while (!load_tagged(split + kHeadSize + lane, tag(layer), word)) {
        }
        (lane == 0 ? s.top : s.sum)[k] = __uint_as_float(word);
      }
    }
    block_sync();
    if (warp_ == 0) {
      const float mine = lane < count ? s.top[lane] : -INFINITY;
      float larger = fmaxf(mine, top);  // of all splits up to this one
#pragma unroll
      for (int d = 1; d < 32; d *= 2) {
        const float other = __shfl_up_sync(kWholeWarp, larger, d);
        if (lane >= d) larger = fmaxf(larger, other);
      }
      const float before = __shfl_up_sync(kWholeWarp, larger, 1);
      s.before[lane] = rescale(lane == 0 ? top : before, larger);
      s.here[lane] = rescale(mine, larger);
      top = __shfl_sync(kWholeWarp, larger, 31);
      __syncwarp();
      for (int k = 0; k < count; ++k) {
        const float its_sum = s.sum[k];
        const float its_value = s.values[k][lane];
        const bool start = first + k == 0;
        sum = start ? its_sum : __fmaf_rn(its_sum, s.here[k], __fmul_rn(sum, s.before[k]));
        value = start ? its_value : __fmaf_rn(its_value, s.here[k], __fmul_rn(value, s.before[k]));
      }
    }
    block_sync();
  }
  if (warp_ != 0) return;
  const float mine = attended(value, sum);
  const float next = __shfl_down_sync(kWholeWarp, mine, 1);
  if (lane % 2 == 0) {
    store_word(words(layer, token, BoardPlaces::kAttended) + (head * kHeadSize + operand_place(channel + lane)) / 2,
               pack(__float2bfloat16_rn(mine), __float2bfloat16_rn(next)));
  }
}

}  // namespace assay::cuda::fast::persistent
