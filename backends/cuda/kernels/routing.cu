#include "backends/cuda/kernels/device_math.cuh"
#include "backends/cuda/kernels/routing.h"
#include "backends/cuda/runtime/error.h"

namespace assay::cuda {
namespace {

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

constexpr int kThreads = 1024;

__device__ float infinity() { return __uint_as_float(0x7f800000u); }
__device__ float not_a_number() { return __uint_as_float(0x7fc00000u); }

// Softmax in place by every thread of a warp; the sum runs ascending.
__device__ void softmax(float* values, int count, int lane) {
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
__device__ float sum_of_largest(const float* values, int size, int counted) {
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
__device__ void keep_best_groups(const ChooseOnDevice& a, float* choice, float* scores, int lane) {
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

__device__ Choice better_of(Choice a, Choice b) {
  return b.value > a.value || (b.value == a.value && b.expert < a.expert) ? b : a;
}

// The largest of the choices that are no NaN, the lowest expert among equals; all threads get it.
__device__ Choice best_choice(const float* choice, int count, int lane) {
  Choice best{-infinity(), count};
  for (int e = lane; e < count; e += 32) {
    if (choice[e] == choice[e]) best = better_of(best, {choice[e], e});
  }
  for (int width = 16; width > 0; width /= 2) {
    best = better_of(best,
                     {__shfl_xor_sync(kWholeWarp, best.value, width), __shfl_xor_sync(kWholeWarp, best.expert, width)});
  }
  return best;
}

__device__ bool contains(const uint16_t* experts, int count, int expert) {
  for (int k = 0; k < count; ++k) {
    if (experts[k] == expert) return true;
  }
  return false;
}

__device__ void sort_ascending(uint16_t* experts, int count) {
  for (int i = 1; i < count; ++i) {
    const uint16_t moved = experts[i];
    int at = i;
    for (; at > 0 && experts[at - 1] > moved; --at) experts[at] = experts[at - 1];
    experts[at] = moved;
  }
}

__device__ void set_weights(const ChooseOnDevice& a, const float* scores, const uint16_t* experts, float* weights) {
  for (int k = 0; k < a.topk; ++k) weights[k] = scores[experts[k]];
  if (a.sigmoid && a.topk > 1) {
    float total = 0;
    for (int k = 0; k < a.topk; ++k) total = total + weights[k];
    for (int k = 0; k < a.topk; ++k) weights[k] = weights[k] / (total + 1e-20f);
  } else if (!a.sigmoid && !a.pre_softmax) {
    float top = weights[0];
    for (int k = 1; k < a.topk; ++k) top = DeviceSingle::greater(weights[k], top);
    float total = 0;
    for (int k = 0; k < a.topk; ++k) {
      weights[k] = exponential(weights[k] - top);
      total = total + weights[k];
    }
    for (int k = 0; k < a.topk; ++k) weights[k] = weights[k] / total;
  }
  for (int k = 0; k < a.topk && a.scaled; ++k) weights[k] = weights[k] * a.factor;
}

__global__ void choose_kernel(ChooseOnDevice a) {
  extern __shared__ float scores[];          // (experts) what weights are made of
  float* const choice = scores + a.experts;  // (experts) what the choice looks at
  float* const group_scores = choice + a.experts;
  const int token = static_cast<int>(blockIdx.x);
  const int lane = static_cast<int>(threadIdx.x);
  const float* logits = a.args.logits + int64_t{token} * a.experts;
  uint16_t* experts = a.args.experts + int64_t{token} * a.topk;
  for (int e = lane; e < a.experts; e += 32) {
    scores[e] = a.sigmoid ? arithmetic::sigmoid<DeviceSingle>(logits[e]) : logits[e];
  }
  __syncwarp();
  if (!a.sigmoid && a.pre_softmax) softmax(scores, a.experts, lane);
  for (int e = lane; e < a.experts; e += 32)
    choice[e] = a.args.bias == nullptr ? scores[e] : scores[e] + a.args.bias[e];
  __syncwarp();
  if (a.groups > 0) keep_best_groups(a, choice, group_scores, lane);
  float last = 0;
  for (int k = 0; k < a.topk; ++k) {
    int best = best_choice(choice, a.experts, lane).expert;
    if (best == a.experts) {  // nothing but NaN left
      for (best = 0; contains(experts, k, best);) ++best;
    }
    last = choice[best];
    __syncwarp();
    if (lane == 0) {
      experts[k] = static_cast<uint16_t>(best);
      choice[best] = not_a_number();
    }
    __syncwarp();
  }
  const float left = best_choice(choice, a.experts, lane).value;
  if (lane != 0) return;
  a.args.margins[token] = last - left;
  sort_ascending(experts, a.topk);
  set_weights(a, scores, experts, a.args.factors + int64_t{token} * a.topk);
}

// One block, one warp an expert: counts, then places in ascending order.
__global__ void group_kernel(GroupArgs a, Groups groups) {
  extern __shared__ int32_t counts[];  // (experts)
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  for (int e = warp; e < a.experts; e += kThreads / 32) {
    int count = 0;
    for (int s = lane; s < a.slots; s += 32) count += a.chosen[s] == e;
    count = static_cast<int>(__reduce_add_sync(kWholeWarp, static_cast<unsigned>(count)));
    if (lane == 0) counts[e] = count;
  }
  __syncthreads();
  for (int e = warp; e < a.experts; e += kThreads / 32) {
    int first = 0;
    int tile = 0;
    for (int other = lane; other < e; other += 32) {
      first += counts[other];
      tile += (counts[other] + kTileTokens - 1) / kTileTokens;
    }
    first = static_cast<int>(__reduce_add_sync(kWholeWarp, static_cast<unsigned>(first)));
    tile = static_cast<int>(__reduce_add_sync(kWholeWarp, static_cast<unsigned>(tile)));
    auto* order = const_cast<int32_t*>(groups.order) + first;
    for (int begin = 0; begin < a.slots; begin += 32) {
      const int s = begin + lane;
      const bool mine = s < a.slots && a.chosen[s] == e;
      const unsigned all = __ballot_sync(kWholeWarp, mine);
      if (mine) order[__popc(all & ((1u << lane) - 1u))] = s;
      order += __popc(all);
    }
    const int tiles = (counts[e] + kTileTokens - 1) / kTileTokens;
    for (int i = lane; i < tiles; i += 32) {
      const_cast<int32_t*>(groups.tile_expert)[tile + i] = e;
      const_cast<int32_t*>(groups.tile_begin)[tile + i] = first + i * kTileTokens;
      const_cast<int32_t*>(groups.tile_count)[tile + i] = min(kTileTokens, counts[e] - i * kTileTokens);
    }
    if (lane != 0) continue;
    const_cast<int32_t*>(groups.begin)[e] = first;
    if (e < a.experts - 1) continue;
    const_cast<int32_t*>(groups.begin)[e + 1] = first + counts[e];
    *const_cast<int32_t*>(groups.tiles) = tile + tiles;
  }
}

}  // namespace

void choose_experts(const ChooseArgs& args, cudaStream_t stream) {
  if (args.tokens == 0) return;
  const model::MoeConfig& moe = *args.moe;
  ChooseOnDevice a{args,
                   moe.experts,
                   moe.topk,
                   moe.groups,
                   moe.group_topk,
                   moe.score == model::RouterScore::kSigmoid,
                   moe.pre_softmax,
                   moe.scaling_factor != 1,
                   static_cast<float>(moe.scaling_factor)};
  a.args.moe = nullptr;  // host memory
  const size_t shared = static_cast<size_t>(2 * moe.experts + moe.groups) * sizeof(float);
  choose_kernel<<<static_cast<unsigned>(args.tokens), 32, shared, stream>>>(a);
  check_launch("choose_experts");
}

Groups group_slots(const GroupArgs& args, cudaStream_t stream) {
  Groups groups;
  groups.most_tiles = most_tiles(args.slots, args.experts);
  groups.order = args.storage;
  groups.tile_expert = groups.order + args.slots;
  groups.tile_begin = groups.tile_expert + groups.most_tiles;
  groups.tile_count = groups.tile_begin + groups.most_tiles;
  groups.tiles = groups.tile_count + groups.most_tiles;
  groups.begin = groups.tiles + 1;
  groups.experts = args.experts;
  group_kernel<<<1, kThreads, static_cast<size_t>(args.experts) * sizeof(int32_t), stream>>>(args, groups);
  check_launch("group_slots");
  return groups;
}

}  // namespace assay::cuda
