// The arithmetic of attention (kernels/attention_bf16.cuh) for heads of kHeadSize channels.
#pragma once

#include "backends/cuda/fast/attention.h"
#include "backends/cuda/fast/ptx.cuh"
#include "backends/cuda/kernels/attention_bf16.cuh"

namespace assay::cuda::fast {

// log2(e) / sqrt(kHeadSize)
constexpr float kScoreScale = kLog2E * 0.08838834764831845f;

__device__ inline float probability(float score, float top) { return cuda::probability(score, top, kScoreScale); }
__device__ inline float rescale(float before, float now) { return cuda::rescale(before, now, kScoreScale); }
__device__ inline uint32_t pack(bf16 low, bf16 high) { return two_bf16(low, high); }

// Channels i and i + kHeadSize / 2 of a head, rotated as kernels/prepare_heads.cu does.
__device__ inline float2 rotate(float2 pair, float cosine, float sine) {
  return make_float2(__fmaf_rn(pair.x, cosine, -__fmul_rn(pair.y, sine)),
                     __fmaf_rn(pair.y, cosine, __fmul_rn(pair.x, sine)));
}

}  // namespace assay::cuda::fast
