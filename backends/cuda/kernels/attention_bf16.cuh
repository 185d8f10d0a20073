// The arithmetic of attention in bf16 models, the same for a single new token and for a prompt of any length.
//
// Score of a position: chain of mma.m16n8k16 from +0 over the channels, padded with zeros to a multiple of 32; in every
// 32 channels first those with channel mod 8 < 4, then the others. Positions are cut into splits of 256 at absolute
// positions. Within a split, for each block of 64 positions: m = max(m, scores); the sums are multiplied by
// 2^((m before - m) c), c = log2(e) / sqrt(channels); p = 2^(score c - m c); p is split into two bf16 (high = bf16(p),
// low = bf16(p - high)); for every 16 positions ascending the sums take the mma of the high parts with the values, then
// that of the low parts. The sum of p is the same chain over values of 1. Positions after the query have p = 0 and
// values 0. Splits ascending: M = max(m, m'), both sides scaled by 2^((their m - M) c). The result is value / sum + 0
// (so that a zero has one sign), rounded to bf16.
//
// So a block of positions that a query does not see leaves its sums as they are: p = 0 throughout, m stays, 2^0 = 1.
#pragma once

#include <cuda_bf16.h>

#include <cstdint>

#include "backends/cuda/kernels/tensor_core.cuh"

namespace assay::cuda {

inline constexpr int kSubsplit = 64;            // positions that share a running maximum
inline constexpr uint32_t kOnes = 0x3f803f80u;  // two bf16
inline constexpr float kLog2E = 1.4426950408889634f;

// 2^x, within 2 ulp; below 2^-126 it is 0.
__device__ inline float power_of_two(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// `c` is kLog2E times the factor of scores, everywhere below.
__device__ inline float probability(float score, float top, float c) {
  return power_of_two(__fmaf_rn(score, c, -__fmul_rn(top, c)));
}
__device__ inline float rescale(float before, float now, float c) {
  return power_of_two(__fmul_rn(__fsub_rn(before, now), c));
}

__device__ inline uint32_t two_bf16(__nv_bfloat16 low, __nv_bfloat16 high) {
  return static_cast<uint32_t>(__bfloat16_as_ushort(low)) | static_cast<uint32_t>(__bfloat16_as_ushort(high)) << 16;
}
// Both rounded by one instruction; a conversion of a single number is four times as slow.
__device__ inline uint32_t two_bf16(float low, float high) {
  uint32_t two;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(two) : "f"(high), "f"(low));
  return two;
}

// Two probabilities as two words: the high parts and the low parts.
__device__ inline void split_probabilities(float p0, float p1, uint32_t& high, uint32_t& low) {
  high = two_bf16(p0, p1);
  low = two_bf16(__fsub_rn(p0, __uint_as_float(high << 16)), __fsub_rn(p1, __uint_as_float(high & 0xffff0000u)));
}

// Whether one of two bf16 is an infinity or a NaN. A query must not meet such a value of a position after it: 0 times
// infinity is not 0.
__device__ inline bool unbounded(uint32_t two) {
  return (two & 0x7f80u) == 0x7f80u || (two & 0x7f800000u) == 0x7f800000u;
}

// How a further split is put behind those before it.
struct SplitMerge {
  float top;     // of both
  float by;      // factor of what is there
  float its_by;  // factor of the further split
};
__device__ inline SplitMerge merge_splits(float top, float its_top, float c) {
  const float larger = fmaxf(top, its_top);
  return {larger, rescale(top, larger, c), rescale(its_top, larger, c)};
}
__device__ inline float merged(float value, float its_value, const SplitMerge& merge) {
  return __fmaf_rn(its_value, merge.its_by, __fmul_rn(value, merge.by));
}

__device__ inline float attended(float value, float sum) { return __fadd_rn(__fdiv_rn(value, sum), 0.0f); }

}  // namespace assay::cuda
