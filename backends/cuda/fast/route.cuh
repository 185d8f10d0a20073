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
  const uint64_t* tagged = nullptr;  // (tokens, experts) logits with `tag` instead of logits and done; or null
  uint32_t tag = 0;
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

// Called by a whole warp.
__device__ inline void choose_experts(const RouterArgs& args, int token, Routed& routed) {
  const int lane = threadIdx.x % 32;
  float score[2];
  uint32_t key[2];
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int e = lane + 32 * i;
    float logit = 0.0f;
    if (e < args.experts && args.tagged == nullptr) logit = __ldcg(args.logits + token * args.experts + e);
    if (e < args.experts && args.tagged != nullptr) {
      uint32_t word;
      while (!load_tagged(args.tagged + token * args.experts + e, args.tag, word)) {
      }
      logit = __uint_as_float(word);
    }
    __syncwarp();
    score[i] = e < args.experts ? arithmetic::sigmoid<DeviceSingle>(logit) : 0.0f;
    const float choice = args.bias != nullptr && e < args.experts ? __fadd_rn(score[i], args.bias[e]) : score[i];
    key[i] = e < args.experts ? ordered(choice) : 0;
  }
  bool open[2] = {lane < args.experts, lane + 32 < args.experts};
  unsigned long long chosen = 0;
  uint32_t last = 0;
  for (int k = 0; k < args.topk; ++k) {
    const uint32_t mine = max(open[0] ? key[0] : 0, open[1] ? key[1] : 0);
    const uint32_t best = __reduce_max_sync(0xffffffffu, mine);
    uint32_t id = 0xffffffffu;
    if (open[1] && key[1] == best) id = lane + 32;
    if (open[0] && key[0] == best) id = lane;
    id = __reduce_min_sync(0xffffffffu, id);
    if (id == static_cast<uint32_t>(lane)) open[0] = false;
    if (id == static_cast<uint32_t>(lane + 32)) open[1] = false;
    chosen |= 1ull << id;
    last = best;
  }
  if (args.margins != nullptr) {
    const uint32_t left = __reduce_max_sync(0xffffffffu, max(open[0] ? key[0] : 0, open[1] ? key[1] : 0));
    if (lane == 0) args.margins[token] = __fsub_rn(from_ordered(last), left == 0 ? -INFINITY : from_ordered(left));
  }
  float weight[kMostTopk];
  float total = 0.0f;
  unsigned long long rest = chosen;
#pragma unroll
  for (int k = 0; k < kMostTopk; ++k) {
    if (k < args.topk) {
      const int e = __ffsll(static_cast<long long>(rest)) - 1;
      rest &= rest - 1;
      const float low = __shfl_sync(0xffffffffu, score[0], e % 32);
      const float high = __shfl_sync(0xffffffffu, score[1], e % 32);
      weight[k] = e < 32 ? low : high;
      total = __fadd_rn(total, weight[k]);
      if (args.chosen != nullptr && lane == 0) args.chosen[token * args.topk + k] = static_cast<uint16_t>(e);
    }
  }
  if (lane == 0) {
    routed.chosen[token] = chosen;
#pragma unroll
    for (int k = 0; k < kMostTopk; ++k) {
      if (k < args.topk) {
        const float w = args.topk > 1 ? __fdiv_rn(weight[k], __fadd_rn(total, 1e-20f)) : weight[k];
        routed.weight[token][k] = __fmul_rn(w, args.scaling_factor);
      }
    }
  }
}

// Waits until all logits are there, then routes. Called by the whole block; a warp a token. Ends with a barrier.
__device__ inline void route(const RouterArgs& args, int tokens, Routed& routed) {
  const int warp = threadIdx.x / 32;
  if (warp < tokens) {
    const uint32_t blocks = args.experts / 16;
    if (args.tagged == nullptr) wait_until(args.done, blocks);
    choose_experts(args, warp, routed);
  }
  block_sync();
  if (threadIdx.x < kMostExperts) {
    unsigned long long active = 0;
    for (int t = 0; t < tokens; ++t) active |= routed.chosen[t];
    const unsigned long long bit = 1ull << threadIdx.x;
    if (active & bit) routed.expert[__popcll(active & (bit - 1))] = static_cast<unsigned char>(threadIdx.x);
    if (threadIdx.x == 0) {
      routed.active = active;
      routed.active_count = __popcll(active);
    }
  }
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
