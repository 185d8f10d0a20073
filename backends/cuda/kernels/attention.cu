#include "backends/cuda/kernels/attention.h"
#include "backends/cuda/kernels/attention_math.cuh"
#include "backends/cuda/runtime/error.h"

namespace assay::cuda {
namespace {

constexpr int kThreads = 128;
constexpr int kHalfWarps = kThreads / kLanes;

// One warp a head: group * (per_group + 2) + (query 0 .. per_group-1, key, value).
template <class Stored>
__global__ void heads_kernel(HeadsArgs a) {
  extern __shared__ float y[];  // (channels)
  const int lane = static_cast<int>(threadIdx.x);
  const int token = static_cast<int>(blockIdx.y);
  const int channels = a.cache.channels;
  const int heads = a.cache.groups * (a.per_group + 2);
  const int group = static_cast<int>(blockIdx.x) / (a.per_group + 2);
  const int kind = static_cast<int>(blockIdx.x) % (a.per_group + 2);
  const bool query = kind < a.per_group;
  const bool value = kind == a.per_group + 1;
  const float* source = a.qkv + (int64_t{token} * heads + blockIdx.x) * channels;
  const int position = a.tokens.position[token];
  for (int i = lane; i < channels; i += 32) y[i] = source[i];
  __syncwarp();
  const HeadNorm norm = query ? a.q_norm : a.k_norm;
  if (!value && norm.gamma != nullptr) {
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
  if (!value && a.half > 0) {
    const float* cosine = a.rotary + int64_t{position} * 2 * a.half;
    for (int i = lane; i < a.half; i += 32) {
      float& first = y[a.interleaved ? 2 * i : i];
      float& second = y[a.interleaved ? 2 * i + 1 : i + a.half];
      const float p = first;
      const float q = second;
      const float sine = cosine[a.half + i];
      first = __fmaf_rn(p, cosine[i], -(q * sine));
      second = __fmaf_rn(q, cosine[i], p * sine);
    }
    __syncwarp();
  }
  if (query) {
    float* to = a.queries + ((int64_t{token} * a.cache.groups + group) * a.per_group + kind) * channels;
    for (int i = lane; i < channels; i += 32) to[i] = a.cache.bf16 ? arithmetic::round_bf16(y[i]) : y[i];
  } else {
    auto* to = static_cast<Stored*>(value ? a.cache.values : a.cache.keys) +
               cache_offset(a.cache, a.tokens, a.layer, token, group, position);
    for (int i = lane; i < channels; i += 32) store(to + i, y[i]);
  }
}

// One block a split of a head of a token.
template <class Stored>
__global__ void __launch_bounds__(kThreads) split_kernel(AttendArgs a) {
  extern __shared__ float query[];  // (channels)
  __shared__ float e[kSplit];
  const int split = static_cast<int>(blockIdx.x);
  const int head = static_cast<int>(blockIdx.y);
  const int token = a.first + static_cast<int>(blockIdx.z);
  const int heads = static_cast<int>(gridDim.y);
  const int begin = split * kSplit;
  const int length = min(kSplit, a.tokens.position[token] + 1 - begin);
  if (length <= 0) return;
  const int thread = static_cast<int>(threadIdx.x);
  const int lane = thread % kLanes;
  const int channels = a.cache.channels;
  const int group = head / a.per_group;
  const auto* keys = static_cast<const Stored*>(a.cache.keys);
  const auto* values = static_cast<const Stored*>(a.cache.values);
  float* result = split_result(a, heads, static_cast<int>(gridDim.x), token, head, split);
  const float* own = a.queries + (int64_t{token} * heads + head) * channels;
  for (int i = thread; i < channels; i += kThreads) query[i] = own[i];
  __syncthreads();
  for (int first = 0; first < length; first += kHalfWarps) {
    const int j = first + thread / kLanes;
    const Stored* key = keys + cache_offset(a.cache, a.tokens, a.layer, token, group, begin + min(j, length - 1));
    const float score =
        half_warp_dot(channels, [&](int k, float acc) { return __fmaf_rn(query[k], widen(key[k]), acc); }) * a.scale;
    if (lane == 0 && j < length) e[j] = score;
  }
  __syncthreads();
  if (thread < 32) {
    float top;
    const float total = split_softmax(e, length, top);
    if (thread == 0) {
      result[channels] = top;
      result[channels + 1] = total;
    }
  }
  __syncthreads();
  for (int d = thread; d < channels; d += kThreads) {
    float weighted = 0;
    for (int j = 0; j < length; ++j) {
      const Stored* value = values + cache_offset(a.cache, a.tokens, a.layer, token, group, begin + j);
      weighted = __fmaf_rn(e[j], widen(value[d]), weighted);
    }
    result[d] = weighted;
  }
}

template <class Stored>
__global__ void combine_kernel(AttendArgs a, int splits) {
  const int head = static_cast<int>(blockIdx.x);
  const int token = a.first + static_cast<int>(blockIdx.y);
  const int heads = static_cast<int>(gridDim.x);
  const int channels = a.cache.channels;
  const int used = a.tokens.position[token] / kSplit + 1;
  auto* y = static_cast<Stored*>(a.y.data) + int64_t{token} * a.y.stride;
  float top = split_result(a, heads, splits, token, head, 0)[channels];
  for (int s = 0; s < used; ++s) {
    top = DeviceSingle::greater(split_result(a, heads, splits, token, head, s)[channels], top);
  }
  for (int d = static_cast<int>(threadIdx.x); d < channels; d += kThreads) {
    float total = 0;
    float sum = 0;
    for (int s = 0; s < used; ++s) {
      const float* result = split_result(a, heads, splits, token, head, s);
      const float factor = exponential(result[channels] - top);
      total = __fmaf_rn(result[channels + 1], factor, total);
      sum = __fmaf_rn(result[d], factor, sum);
    }
    store(y + head * channels + d, sum / total);
  }
  const int width = heads * channels;
  const int behind = width + static_cast<int>(threadIdx.x);
  if (a.y.bf16 && head == 0 && behind < round_up(width, kTile)) store(y + behind, 0.0f);
}

}  // namespace

size_t split_floats(int tokens, int heads, int channels, int longest) {
  return static_cast<size_t>(tokens) * static_cast<size_t>(heads) * static_cast<size_t>(splits_for(longest)) *
         static_cast<size_t>(channels + 2);
}

void prepare_heads(const HeadsArgs& args, cudaStream_t stream) {
  if (args.tokens.count == 0) return;
  const dim3 grid(static_cast<unsigned>(args.cache.groups * (args.per_group + 2)),
                  static_cast<unsigned>(args.tokens.count));
  const size_t shared = static_cast<size_t>(args.cache.channels) * sizeof(float);
  if (args.cache.bf16) {
    heads_kernel<Bfloat16><<<grid, 32, shared, stream>>>(args);
  } else {
    heads_kernel<float><<<grid, 32, shared, stream>>>(args);
  }
  check_launch("prepare_heads");
}

void combine_splits(const AttendArgs& args, cudaStream_t stream) {
  const auto heads = static_cast<unsigned>(args.cache.groups * args.per_group);
  const dim3 tokens(heads, static_cast<unsigned>(args.tokens.count - args.first));
  const int splits = splits_for(args.tokens.longest);
  if (args.y.bf16) {
    combine_kernel<Bfloat16><<<tokens, kThreads, 0, stream>>>(args, splits);
  } else {
    combine_kernel<float><<<tokens, kThreads, 0, stream>>>(args, splits);
  }
  check_launch("combine_splits");
}

void attend(const AttendArgs& args, cudaStream_t stream) {
  if (args.tokens.count == args.first) return;
  const auto heads = static_cast<unsigned>(args.cache.groups * args.per_group);
  const dim3 grid(static_cast<unsigned>(splits_for(args.tokens.longest)), heads,
                  static_cast<unsigned>(args.tokens.count - args.first));
  const size_t shared = static_cast<size_t>(args.cache.channels) * sizeof(float);
  if (args.cache.bf16) {
    split_kernel<Bfloat16><<<grid, kThreads, shared, stream>>>(args);
  } else {
    split_kernel<float><<<grid, kThreads, shared, stream>>>(args);
  }
  check_launch("attend");
  combine_splits(args, stream);
}

}  // namespace assay::cuda
