// The arithmetic of attention, the same for decode and prefill.
//
// Score of a position: chain of eight mma.m16n8k16 over the 128 channels; in every 32 channels first those with channel
// mod 8 < 4, then the others. Within a split, for each block of 64 positions: m = max(m, scores); the accumulators (and
// the sum) are multiplied by 2^((m before - m) c) with c = log2(e) / sqrt(channels); p = 2^(score c - m c); p is split
// into two bf16 (high = bf16(p), low = bf16(p - high)); for every 16 positions ascending the accumulators take the mma
// of the high parts with the values, then that of the low parts. The sum of p is the same chain over values of 1.
// Positions after the query have p = 0. Splits ascending: M = max(m, m'), both sides scaled by 2^((their m - M) c).
#pragma once

#include "backends/cuda/fast/attention.h"
#include "backends/cuda/fast/ptx.cuh"

namespace assay::cuda::fast {

constexpr int kSubsplit = 64;
// log2(e) / sqrt(kHeadSize)
constexpr float kScoreScale = 1.4426950408889634f * 0.08838834764831845f;
constexpr uint32_t kOnes = 0x3f803f80u;  // two bf16

__device__ inline float probability(float score, float top) {
  return power_of_two(__fmaf_rn(score, kScoreScale, -__fmul_rn(top, kScoreScale)));
}
__device__ inline float rescale(float before, float now) {
  return power_of_two(__fmul_rn(__fsub_rn(before, now), kScoreScale));
}

// Channels i and i + kHeadSize / 2 of a head, rotated as kernels/attention.cu does.
__device__ inline float2 rotate(float2 pair, float cosine, float sine) {
  return make_float2(__fmaf_rn(pair.x, cosine, -__fmul_rn(pair.y, sine)),
                     __fmaf_rn(pair.y, cosine, __fmul_rn(pair.x, sine)));
}

__device__ inline uint32_t pack(bf16 low, bf16 high) {
  return static_cast<uint32_t>(__bfloat16_as_ushort(low)) | static_cast<uint32_t>(__bfloat16_as_ushort(high)) << 16;
}

// Two probabilities as two words: the high parts and the low parts.
__device__ inline void split_probabilities(float p0, float p1, uint32_t& high, uint32_t& low) {
  const bf16 h0 = __float2bfloat16_rn(p0);
  const bf16 h1 = __float2bfloat16_rn(p1);
  high = pack(h0, h1);
  low = pack(__float2bfloat16_rn(__fsub_rn(p0, __bfloat162float(h0))),
             __float2bfloat16_rn(__fsub_rn(p1, __bfloat162float(h1))));
}

}  // namespace assay::cuda::fast
