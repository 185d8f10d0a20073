// The choice of experts for one token by one warp (backends/reference/arithmetic/routing.h).
#pragma once

#include "backends/cuda/kernels/device_math.cuh"
#include "backends/cuda/kernels/routing.h"

namespace assay::cuda {

struct ChooseOnDevice {
  ChooseArgs args;
  int experts;
  int topk;
  int groups;
  int group_topk;
  bool sigmoid;
  bool pre_softmax;
  bool scaled;
  float factor;
};

__device__ inline float infinity() { return __uint_as_float(0x7f800000u); }
__device__ inline float not_a_number() { return __uint_as_float(0x7fc00000u); }

// Softmax in place by every thread of a warp; the sum runs ascending.
__device__ inline void softmax(float* values, int count, int lane) {
  float top = values[0];
  for (int i = 1; i < count; ++i) top = DeviceSingle::greater(values[i], top);
  __syncwarp();
  for (int i = lane; i < count; i += 32) values[i] = exponential(values[i] - top);
  __syncwarp();
  float total = 0;
  for (int i = 0; i < count; ++i) total = total + values[i];
  __syncwarp();
  for (int i = lane; i < count; i += 32) values[i] = values[i] / total;
  __syncwarp();
}

// The sum of the `counted` largest of `size` values, added in descending order.
__device__ inline float sum_of_largest(const float* values, int size, int counted) {
  float sum = 0;
  float last = infinity();
  int last_index = -1;
  for (int n = 0; n < counted; ++n) {
    int best = -1;
    for (int i = 0; i < size; ++i) {
      const bool left = values[i] < last || (values[i] == last && i > last_index);
      if (left && (best < 0 || values[i] > values[best])) best = i;
    }
    if (best < 0) return not_a_number();  // a NaN among them
    last = values[best];
    last_index = best;
    sum = sum + last;
  }
  return sum;
}

// Sets the choices of all but the best groups to -infinity. scores: (groups).
__device__ inline void keep_best_groups(const ChooseOnDevice& a, float* choice, float* scores, int lane) {
  const int size = a.experts / a.groups;
  const int counted = min(size, a.topk / a.group_topk);
  for (int g = lane; g < a.groups; g += 32) scores[g] = sum_of_largest(choice + g * size, size, counted);
  __syncwarp();
  for (int g = lane; g < a.groups; g += 32) {
    int better = 0;
    for (int h = 0; h < a.groups; ++h) better += scores[h] > scores[g] || (h < g && scores[h] == scores[g]);
    for (int i = 0; i < size && better >= a.group_topk; ++i) choice[g * size + i] = -infinity();
  }
  __syncwarp();
}

struct Choice {
  float value;
  int expert;  // experts: none
};

// Orders as the numbers do; 0 for NaN.
__device__ inline uint32_t order_key(float v) {
  if (v != v) return 0;
  const uint32_t bits = __float_as_uint(v == 0.0f ? 0.0f : v);
  return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}

// The largest of the choices that are no NaN, the lowest expert among equals; all threads get it.
__device__ inline Choice best_choice(const float* choice, int count, int lane) {
  uint32_t key = 0;
  int expert = count;
  for (int e = lane; e < count; e += 32) {
    const uint32_t other = order_key(choice[e]);
    if (other > key) {
      key = other;
      expert = e;
    }
  }
  const uint32_t top = __reduce_max_sync(kWholeWarp, key);
  const int best = __reduce_min_sync(kWholeWarp, key == top ? expert : count);
  return {top == 0 ? -infinity() : choice[best], best};
}

__device__ inline bool contains(const int* experts, int count, int expert) {
  for (int k = 0; k < count; ++k) {
    if (experts[k] == expert) return true;
  }
  return false;
}

// The chosen experts' weights from their scores, in place, by every thread of a warp. Sums run ascending.
__device__ inline void set_weights(const ChooseOnDevice& a, float* weights, int lane) {
  float total = 0;
  if (a.sigmoid && a.topk > 1) {
    for (int k = 0; k < a.topk; ++k) total = total + weights[k];
    total = total + 1e-20f;
  } else if (!a.sigmoid && !a.pre_softmax) {
    softmax(weights, a.topk, lane);
  }
  __syncwarp();
  for (int k = lane; k < a.topk; k += 32) {
    float w = weights[k];
    if (a.sigmoid && a.topk > 1) w = w / total;
    if (a.scaled) w = w * a.factor;
    weights[k] = w;
  }
}

// Floats of shared memory that choose_token() needs.
__host__ __device__ inline int choose_floats(int experts, int groups, int topk) {
  return 2 * experts + groups + 2 * topk;
}

// One warp chooses for one token. logits: (experts) of any memory; scratch: 2 * experts + groups floats of shared
// memory.
__device__ inline void choose_token(const ChooseOnDevice& a, const float* logits, int token, float* scratch) {
  float* const scores = scratch;                                 // (experts) what weights are made of
  float* const choice = scores + a.experts;                      // (experts) what the choice looks at
  float* const groups = choice + a.experts;                      // (groups)
  float* const weights = groups + a.groups;                      // (topk) ascending expert
  int* const chosen = reinterpret_cast<int*>(weights + a.topk);  // (topk) as they were found
  const int lane = static_cast<int>(threadIdx.x) % 32;
  for (int e = lane; e < a.experts; e += 32) {
    scores[e] = a.sigmoid ? arithmetic::sigmoid<DeviceSingle>(logits[e]) : logits[e];
  }
  __syncwarp();
  if (!a.sigmoid && a.pre_softmax) softmax(scores, a.experts, lane);
  for (int e = lane; e < a.experts; e += 32) {
    choice[e] = a.args.bias == nullptr ? scores[e] : scores[e] + a.args.bias[e];
  }
  __syncwarp();
  if (a.groups > 0) keep_best_groups(a, choice, groups, lane);
  float last = 0;
  for (int k = 0; k < a.topk; ++k) {
    int best = best_choice(choice, a.experts, lane).expert;
    if (best == a.experts) {  // nothing but NaN left
      for (best = 0; contains(chosen, k, best);) ++best;
    }
    last = choice[best];
    __syncwarp();
    if (lane == 0) {
      chosen[k] = best;
      choice[best] = not_a_number();
    }
    __syncwarp();
  }
  const float left = best_choice(choice, a.experts, lane).value;
  if (lane == 0) a.args.margins[token] = last - left;
  for (int k = lane; k < a.topk; k += 32) {
    int place = 0;
    for (int other = 0; other < a.topk; ++other) place += chosen[other] < chosen[k];
    a.args.experts[int64_t{token} * a.topk + place] = static_cast<uint16_t>(chosen[k]);
    weights[place] = scores[chosen[k]];
  }
  __syncwarp();
  set_weights(a, weights, lane);
  __syncwarp();
  for (int k = lane; k < a.topk; k += 32) a.args.factors[int64_t{token} * a.topk + k] = weights[k];
}

}  // namespace assay::cuda
