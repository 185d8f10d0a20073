#include "backends/cuda/kernels/attention.h"
#include "backends/cuda/kernels/attention_bf16.cuh"
#include "backends/cuda/kernels/attention_math.cuh"
#include "backends/cuda/runtime/error.h"

namespace assay::cuda {
namespace {

// Which head of which token: group * (per_group + 2) + (query 0 .. per_group-1, key, value).
struct Head {
  int token;
  int index;  // of the token's
  int group;
  int kind;
  bool query;
  bool value;
};

__device__ Head head_of(const HeadsArgs& a, int token, int index) {
  const int kind = index % (a.per_group + 2);
  return {token, index, index / (a.per_group + 2), kind, kind < a.per_group, kind == a.per_group + 1};
}

__device__ const float* source_of(const HeadsArgs& a, const Head& head) {
  return a.qkv + (int64_t{head.token} * a.cache.groups * (a.per_group + 2) + head.index) * a.cache.channels;
}

template <class Stored>
__device__ Stored* place_of(const HeadsArgs& a, const Head& head) {
  if (head.query) {
    return static_cast<Stored*>(a.queries) +
           ((int64_t{head.token} * a.cache.groups + head.group) * a.per_group + head.kind) * a.cache.channels;
  }
  return static_cast<Stored*>(head.value ? a.cache.values : a.cache.keys) +
         cache_offset(a.cache, a.tokens, a.layer, head.token, head.group, a.tokens.position[head.token]);
}

// a' = a cos - b sin, b' = b cos + a sin.
__device__ float turned_first(float a, float b, float cosine, float sine) { return __fmaf_rn(a, cosine, -(b * sine)); }
__device__ float turned_second(float a, float b, float cosine, float sine) { return __fmaf_rn(b, cosine, a * sine); }

// Any number of channels: one warp a head.
template <class Stored>
__global__ void any_heads_kernel(const __grid_constant__ HeadsArgs a) {
  extern __shared__ float y[];  // (channels)
  const int lane = static_cast<int>(threadIdx.x);
  const int channels = a.cache.channels;
  const Head head = head_of(a, static_cast<int>(blockIdx.y), static_cast<int>(blockIdx.x));
  const float* source = source_of(a, head);
  for (int i = lane; i < channels; i += 32) y[i] = source[i];
  __syncwarp();
  const HeadNorm norm = head.query ? a.q_norm : a.k_norm;
  if (!head.value && norm.gamma != nullptr) {
    const auto n = static_cast<float>(channels);
    if (a.centred) {
      const float mean = half_warp_dot(channels, [&](int k, float acc) { return __fmaf_rn(1.0f, y[k], acc); }) / n;
      __syncwarp();
      for (int i = lane; i < channels; i += 32) y[i] = y[i] - mean;
      __syncwarp();
    }
    const float square = half_warp_dot(channels, [&](int k, float acc) { return __fmaf_rn(y[k], y[k], acc); }) / n;
    const float scale = 1.0f / sqrtf(square + a.epsilon);
    __syncwarp();
    for (int i = lane; i < channels; i += 32) {
      const float v = y[i] * scale;
      y[i] = norm.beta == nullptr ? v * norm.gamma[i] : __fmaf_rn(v, norm.gamma[i], norm.beta[i]);
    }
    __syncwarp();
  }
  if (!head.value && a.half > 0) {
    const float* cosine = a.rotary + int64_t{a.tokens.position[head.token]} * 2 * a.half;
    for (int i = lane; i < a.half; i += 32) {
      float& first = y[a.interleaved ? 2 * i : i];
      float& second = y[a.interleaved ? 2 * i + 1 : i + a.half];
      const float p = first;
      first = turned_first(p, second, cosine[i], cosine[a.half + i]);
      second = turned_second(p, second, cosine[i], cosine[a.half + i]);
    }
    __syncwarp();
  }
  Stored* to = place_of<Stored>(a, head);
  for (int i = lane; i < channels; i += 32) store(to + i, y[i]);
}

constexpr int kThreads = 128;
constexpr int kHeads = kThreads / kLanes;  // of a block

// 16 * kEach channels, at most a dot's block: one half-warp a head, its lane l has channels l, l + 16, ... in
// registers.
template <class Stored, int kEach>
__global__ void __launch_bounds__(kThreads) heads_kernel(const __grid_constant__ HeadsArgs a) {
  constexpr int kChannels = kEach * kLanes;
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  const int heads = a.cache.groups * (a.per_group + 2);
  const int wanted = static_cast<int>(blockIdx.x) * kHeads + static_cast<int>(threadIdx.x) / kLanes;
  const int last = a.tokens.count * heads - 1;
  const int index = min(wanted, last);
  const Head head = head_of(a, index / heads, index % heads);
  const float* source = source_of(a, head);
  Stored* to = place_of<Stored>(a, head);  // loads that depend on one another: they begin early
  float y[kEach];
#pragma unroll
  for (int i = 0; i < kEach; ++i) y[i] = source[lane + kLanes * i];

  if (a.q_norm.gamma != nullptr || a.k_norm.gamma != nullptr) {  // every thread, for the sums over half-warps
    const HeadNorm norm = head.query ? a.q_norm : a.k_norm;
    constexpr auto n = static_cast<float>(kChannels);
    float v[kEach];
    float mean = 0;
    if (a.centred) {
      float sum = 0;
#pragma unroll
      for (int i = 0; i < kEach; ++i) sum = __fmaf_rn(1.0f, y[i], sum);
      mean = __shfl_sync(kWholeWarp, tree_sum(0.0f + sum), 0, kLanes) / n;
    }
    float sum = 0;
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      v[i] = a.centred ? y[i] - mean : y[i];
      sum = __fmaf_rn(v[i], v[i], sum);
    }
    const float square = __shfl_sync(kWholeWarp, tree_sum(0.0f + sum), 0, kLanes) / n;
    const float scale = 1.0f / sqrtf(square + a.epsilon);
    if (!head.value && norm.gamma != nullptr) {
#pragma unroll
      for (int i = 0; i < kEach; ++i) {
        const float gamma = norm.gamma[lane + kLanes * i];
        const float w = v[i] * scale;
        y[i] = norm.beta == nullptr ? w * gamma : __fmaf_rn(w, gamma, norm.beta[lane + kLanes * i]);
      }
    }
  }

  const float* cosine = a.rotary + int64_t{a.tokens.position[head.token]} * 2 * a.half;
  if (a.half > 0 && a.interleaved) {  // pairs are neighbouring lanes
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const int pair = (lane + kLanes * i) / 2;
      const float other = __shfl_xor_sync(kWholeWarp, y[i], 1);
      if (head.value || pair >= a.half) continue;
      const float sine = cosine[a.half + pair];
      y[i] = lane % 2 == 0 ? turned_first(y[i], other, cosine[pair], sine)
                           : turned_second(other, y[i], cosine[pair], sine);
    }
  } else if (a.half > 0 && !head.value) {  // pairs are half / 16 registers apart
#pragma unroll
    for (int apart = 1; apart <= kEach / 2; ++apart) {
      if (a.half != apart * kLanes) continue;
#pragma unroll
      for (int i = 0; i < apart; ++i) {
        const int pair = lane + kLanes * i;
        const float first = y[i];
        const float sine = cosine[a.half + pair];
        y[i] = turned_first(first, y[i + apart], cosine[pair], sine);
        y[i + apart] = turned_second(first, y[i + apart], cosine[pair], sine);
      }
    }
  }
  if (wanted > last) return;
#pragma unroll
  for (int i = 0; i < kEach; ++i) store(to + lane + kLanes * i, y[i]);
}

__device__ void store_four(float* to, const float4& v) { *reinterpret_cast<float4*>(to) = v; }
__device__ void store_four(Bfloat16* to, const float4& v) {
  *reinterpret_cast<uint2*>(to) = make_uint2(two_bf16(v.x, v.y), two_bf16(v.z, v.w));
}

// Heads without a norm, half a multiple of 4: a thread has four channels and the four that they turn with, or eight
// that do not turn.
template <class Stored>
__global__ void __launch_bounds__(kThreads) plain_heads_kernel(const __grid_constant__ HeadsArgs a) {
  const int each = a.cache.channels / 8;
  const int heads = a.cache.groups * (a.per_group + 2);
  const int thread = static_cast<int>(blockIdx.x * kThreads + threadIdx.x);
  const int index = thread / each;
  if (index >= a.tokens.count * heads) return;
  const Head head = head_of(a, index / heads, index % heads);
  const int part = thread % each;
  const bool turns = part < a.half / 4;
  const int first = turns ? 4 * part : 8 * part;
  const int second = turns ? first + a.half : first + 4;
  const float* source = source_of(a, head);
  float4 p = *reinterpret_cast<const float4*>(source + first);
  float4 q = *reinterpret_cast<const float4*>(source + second);
  if (turns && !head.value) {
    const float* turn = a.rotary + int64_t{a.tokens.position[head.token]} * 2 * a.half + first;
    const float4 c = *reinterpret_cast<const float4*>(turn);
    const float4 s = *reinterpret_cast<const float4*>(turn + a.half);
    const float4 r = p;
    p = make_float4(turned_first(r.x, q.x, c.x, s.x), turned_first(r.y, q.y, c.y, s.y),
                    turned_first(r.z, q.z, c.z, s.z), turned_first(r.w, q.w, c.w, s.w));
    q = make_float4(turned_second(r.x, q.x, c.x, s.x), turned_second(r.y, q.y, c.y, s.y),
                    turned_second(r.z, q.z, c.z, s.z), turned_second(r.w, q.w, c.w, s.w));
  }
  Stored* to = place_of<Stored>(a, head);
  store_four(to + first, p);
  store_four(to + second, q);
}

template <class Stored>
void launch(const HeadsArgs& args, cudaStream_t stream) {
  const int heads = args.cache.groups * (args.per_group + 2);
  const int channels = args.cache.channels;
  const int64_t all = int64_t{args.tokens.count} * heads;
  const bool normed = args.q_norm.gamma != nullptr || args.k_norm.gamma != nullptr;
  if (!normed && channels % 8 == 0 && args.half % 4 == 0 && (!args.interleaved || args.half == 0)) {
    const auto blocks = static_cast<unsigned>((all * (channels / 8) + kThreads - 1) / kThreads);
    plain_heads_kernel<Stored><<<blocks, kThreads, 0, stream>>>(args);
    return;
  }
  const auto blocks = static_cast<unsigned>((all + kHeads - 1) / kHeads);
  const bool in_registers = args.interleaved || args.half % kLanes == 0;
  switch (in_registers ? channels : 0) {
    case 64:
      return heads_kernel<Stored, 4><<<blocks, kThreads, 0, stream>>>(args);
    case 96:
      return heads_kernel<Stored, 6><<<blocks, kThreads, 0, stream>>>(args);
    case 128:
      return heads_kernel<Stored, 8><<<blocks, kThreads, 0, stream>>>(args);
    case 256:
      return heads_kernel<Stored, 16><<<blocks, kThreads, 0, stream>>>(args);
    default:
      any_heads_kernel<Stored><<<dim3(static_cast<unsigned>(heads), static_cast<unsigned>(args.tokens.count)), 32,
                                 static_cast<size_t>(channels) * sizeof(float), stream>>>(args);
  }
}

}  // namespace

void prepare_heads(const HeadsArgs& args, cudaStream_t stream) {
  if (args.tokens.count == 0) return;
  (args.cache.bf16 ? launch<Bfloat16> : launch<float>)(args, stream);
  check_launch("prepare_heads");
}

}  // namespace assay::cuda
