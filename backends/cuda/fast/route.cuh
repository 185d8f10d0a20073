// Sigmoid router on the device: which experts a token goes to, as in backends/reference/arithmetic/routing.h (without
// groups). One warp a token.
#pragma once

#include "backends/cuda/fast/ptx.cuh"
#include "backends/cuda/kernels/device_math.cuh"

namespace assay::cuda::fast {

struct RouterArgs {
  const float* logits = nullptr;   // (tokens, experts), rounded
  const uint32_t* done = nullptr;  // blocks that have written their logits
  const float* bias = nullptr;     // (experts), for the choice only; or null
  int experts = 0;
  int topk = 0;
  float scaling_factor = 1.0f;
  const uint32_t* words =
      nullptr;                 // the logits as words that may not be there yet, instead of logits and done; or null
  int word_stride = 0;         // from token to token
  uint16_t* chosen = nullptr;  // (tokens, topk) ascending; or null
  float* margins = nullptr;    // (tokens) as routing.h has them; or null
};

// What a block keeps in shared memory.
struct Routed {
  unsigned long long chosen[kMostTokens];  // bit e: the token goes to expert e
  float weight[kMostTokens][kMostTopk];    // ascending expert
  unsigned long long active;               // experts that any token goes to
  int active_count;
  unsigned char expert[kMostExperts];  // active ones, ascending
};

// Unsigned numbers in the order of the floats, -0 and +0 the same; NaN is below all.
__device__ inline uint32_t ordered(float x) {
  if (x != x) return 0;
  const uint32_t bits = __float_as_uint(__fadd_rn(x, 0.0f));
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}
__device__ inline float from_ordered(uint32_t key) {
  if (key == 0) return __uint_as_float(0x7fc00000u);
  return __uint_as_float(key & 0x80000000u ? key & 0x7fffffffu : ~key);
}

// Called by a whole warp; expert lane belongs to lane, and expert 32 + lane.
__device__ inline void choose_experts(const RouterArgs& args, int token, Routed& routed) {
  const int lane = threadIdx.x % 32;
  float score[2];
  uint32_t key[2];
  bool open[2];
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int e = lane + 32 * i;
    float logit = 0.0f;
    open[i] = e < args.experts;
    if (open[i] && args.words == nullptr) logit = __ldcg(args.logits + token * args.experts + e);
    if (open[i] && args.words != nullptr) {
      uint32_t word;
      while (!load_word(args.words + token * args.word_stride + e, word)) {
      }
      logit = __uint_as_float(word);
    }
    __syncwarp();
    score[i] = arithmetic::sigmoid<DeviceSingle>(logit);
    key[i] = open[i] ? ordered(args.bias != nullptr ? __fadd_rn(score[i], args.bias[e]) : score[i]) : 0;
  }
  uint32_t chosen[2] = {0, 0};
  uint32_t last = 0;
  for (int k = 0; k < args.topk; ++k) {
    last = __reduce_max_sync(kWholeWarp, max(open[0] ? key[0] : 0, open[1] ? key[1] : 0));
    const uint32_t low = __ballot_sync(kWholeWarp, open[0] && key[0] == last);
    const uint32_t high = __ballot_sync(kWholeWarp, open[1] && key[1] == last);
    const int half = low != 0 ? 0 : 1;
    const uint32_t bit = low != 0 ? low & (0u - low) : high & (0u - high);
    chosen[half] |= bit;
    if (bit >> lane & 1) open[half] = false;
  }
  if (args.margins != nullptr) {
    const uint32_t left = __reduce_max_sync(kWholeWarp, max(open[0] ? key[0] : 0, open[1] ? key[1] : 0));
    if (lane == 0) args.margins[token] = __fsub_rn(from_ordered(last), left == 0 ? -INFINITY : from_ordered(left));
  }
  float total = 0.0f;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    for (uint32_t rest = chosen[i]; rest != 0; rest &= rest - 1) {
      total = __fadd_rn(total, __shfl_sync(kWholeWarp, score[i], __ffs(rest) - 1));
    }
  }
  const uint32_t below = (1u << lane) - 1;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    if ((chosen[i] >> lane & 1) == 0) continue;
    const int rank = __popc(chosen[i] & below) + (i == 0 ? 0 : __popc(chosen[0]));
    const float weight = args.topk > 1 ? __fdiv_rn(score[i], __fadd_rn(total, 1e-20f)) : score[i];
    routed.weight[token][rank] = __fmul_rn(weight, args.scaling_factor);
    if (args.chosen != nullptr) args.chosen[token * args.topk + rank] = static_cast<uint16_t>(lane + 32 * i);
  }
  if (lane == 0) routed.chosen[token] = static_cast<unsigned long long>(chosen[1]) << 32 | chosen[0];
  __syncwarp();
}

// The experts that any token goes to; thread e of at least kMostExperts or, one after the other, of a warp.
__device__ inline void list_experts(int tokens, int first, int step, Routed& routed) {
  unsigned long long active = 0;
  for (int t = 0; t < tokens; ++t) active |= routed.chosen[t];
  for (int e = first; e < kMostExperts; e += step) {
    const unsigned long long bit = 1ull << e;
    if (active & bit) routed.expert[__popcll(active & (bit - 1))] = static_cast<unsigned char>(e);
  }
  if (first == 0) {
    routed.active = active;
    routed.active_count = __popcll(active);
  }
}

// For one token, by one warp alone.
__device__ inline void route_one(const RouterArgs& args, Routed& routed) {
  choose_experts(args, 0, routed);
  list_experts(1, threadIdx.x % 32, 32, routed);
  __syncwarp();
}

// Waits until all logits are there, then routes. Called by the whole block; a warp a token. Ends with a barrier.
__device__ inline void route(const RouterArgs& args, int tokens, Routed& routed) {
  const int warp = threadIdx.x / 32;
  if (warp < tokens) {
    const uint32_t blocks = args.experts / 16;
    if (args.words == nullptr) wait_until(args.done, blocks);
    choose_experts(args, warp, routed);
  }
  block_sync();
  if (threadIdx.x < kMostExperts) list_experts(tokens, threadIdx.x, kMostExperts, routed);
  block_sync();
}

// SwiGLU times the router's weight (1: none).
__device__ inline float activated(float gate, float up, float weight) {
  return __fmul_rn(__fmul_rn(arithmetic::silu<DeviceSingle>(gate), up), weight);
}

// Place of `expert` among those of the token, ascending; -1: not chosen.
__device__ inline int rank_of(const Routed& routed, int token, int expert) {
  const unsigned long long chosen = routed.chosen[token];
  const unsigned long long bit = 1ull << expert;
  return chosen & bit ? __popcll(chosen & (bit - 1)) : -1;
}

}  // namespace assay::cuda::fast
