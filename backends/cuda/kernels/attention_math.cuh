// What the attention kernels share: places in the cache and in the scratch, and the softmax of one split.
#pragma once

#include "backends/cuda/kernels/attention.h"
#include "backends/cuda/kernels/device_math.cuh"
#include "backends/reference/arithmetic/attend.h"

namespace assay::cuda {

inline constexpr int kSplit = static_cast<int>(arithmetic::kSplit);

inline int splits_for(int longest) { return (longest + kSplit - 1) / kSplit; }

__device__ inline int64_t cache_offset(const CacheView& c, const Tokens& tokens, int layer, int token, int group,
                                       int position) {
  const int block = tokens.blocks[tokens.table[token] + position / c.block_size];
  const int64_t head = (int64_t{layer} * c.block_count + block) * c.groups + group;
  return (head * c.block_size + position % c.block_size) * c.channels;
}

// `slot`: of the token among those whose results are kept.
__device__ inline float* split_result(const AttendArgs& a, int heads, int splits, int slot, int head, int split) {
  return a.splits + ((int64_t{slot} * heads + head) * splits + split) * (a.cache.channels + 2);
}

// Scores e (length) of one query become exponentials; by one warp. Returns their sum (in every thread); `top` gets the
// largest score, a NaN where the first is one.
__device__ inline float split_softmax(float* e, int length, float& top) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  top = e[0];
  const float first = top;
  for (int j = lane; j < length; j += 32) top = fmaxf(e[j], top);
  for (int width = 16; width > 0; width /= 2) top = fmaxf(top, __shfl_xor_sync(kWholeWarp, top, width));
  top = first == first ? top : first;
  __syncwarp();
  for (int j = lane; j < length; j += 32) e[j] = exponential(e[j] - top);
  __syncwarp();
  return half_warp_dot(length, [&](int j, float acc) { return __fmaf_rn(1.0f, e[j], acc); });
}

}  // namespace assay::cuda
