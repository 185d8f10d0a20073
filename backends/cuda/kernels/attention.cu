#include "backends/cuda/kernels/attend_bf16.h"
#include "backends/cuda/kernels/attention.h"
#include "backends/cuda/kernels/attention_math.cuh"
#include "backends/cuda/runtime/error.h"

namespace assay::cuda {
namespace {

constexpr int kThreads = 128;
constexpr int kHalfWarps = kThreads / kLanes;

// One block a split of a head of a token.
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
  const auto* keys = static_cast<const float*>(a.cache.keys);
  const auto* values = static_cast<const float*>(a.cache.values);
  float* result = split_result(a, heads, static_cast<int>(gridDim.x), token - a.first, head, split);
  const float* own = static_cast<const float*>(a.queries) + (int64_t{token} * heads + head) * channels;
  for (int i = thread; i < channels; i += kThreads) query[i] = own[i];
  __syncthreads();
  for (int first = 0; first < length; first += kHalfWarps) {
    const int j = first + thread / kLanes;
    const float* key = keys + cache_offset(a.cache, a.tokens, a.layer, token, group, begin + min(j, length - 1));
    const float score =
        half_warp_dot(channels, [&](int k, float acc) { return __fmaf_rn(query[k], key[k], acc); }) * a.scale;
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
      const float* value = values + cache_offset(a.cache, a.tokens, a.layer, token, group, begin + j);
      weighted = __fmaf_rn(e[j], value[d], weighted);
    }
    result[d] = weighted;
  }
}

__global__ void combine_kernel(AttendArgs a, int splits) {
  const int head = static_cast<int>(blockIdx.x);
  const int token = a.first + static_cast<int>(blockIdx.y);
  const int heads = static_cast<int>(gridDim.x);
  const int channels = a.cache.channels;
  const int used = a.tokens.position[token] / kSplit + 1;
  auto* y = static_cast<float*>(a.y.data) + int64_t{token} * a.y.stride;
  float top = split_result(a, heads, splits, token - a.first, head, 0)[channels];
  for (int s = 0; s < used; ++s) {
    top = DeviceSingle::greater(split_result(a, heads, splits, token - a.first, head, s)[channels], top);
  }
  for (int d = static_cast<int>(threadIdx.x); d < channels; d += kThreads) {
    float total = 0;
    float sum = 0;
    for (int s = 0; s < used; ++s) {
      const float* result = split_result(a, heads, splits, token - a.first, head, s);
      const float factor = exponential(result[channels] - top);
      total = __fmaf_rn(result[channels + 1], factor, total);
      sum = __fmaf_rn(result[d], factor, sum);
    }
    y[head * channels + d] = sum / total;
  }
}

}  // namespace

size_t split_floats(int tokens, int heads, int channels, int longest) {
  return static_cast<size_t>(tokens) * static_cast<size_t>(heads) * static_cast<size_t>(splits_for(longest)) *
         static_cast<size_t>(channels + 2);
}

void attend(const AttendArgs& args, cudaStream_t stream) {
  if (args.tokens.count == args.first) return;
  if (args.cache.bf16) return attend_bf16(args, kBundle, stream);
  const int splits = splits_for(args.tokens.longest);
  const auto heads = static_cast<unsigned>(args.cache.groups * args.per_group);
  const auto tokens = static_cast<unsigned>(args.tokens.count - args.first);
  const size_t shared = static_cast<size_t>(args.cache.channels) * sizeof(float);
  split_kernel<<<dim3(static_cast<unsigned>(splits), heads, tokens), kThreads, shared, stream>>>(args);
  check_launch("attend");
  combine_kernel<<<dim3(heads, tokens), kThreads, 0, stream>>>(args, splits);
  check_launch("attend");
}

}  // namespace assay::cuda
