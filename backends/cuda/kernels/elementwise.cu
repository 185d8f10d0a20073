#include <algorithm>

#include "backends/cuda/kernels/device_math.cuh"
#include "backends/cuda/kernels/elementwise.h"
#include "backends/cuda/runtime/error.h"

namespace assay::cuda {
namespace {

using model::Activation;

constexpr int kThreads = 256;
constexpr int kHalfWarps = kThreads / kLanes;

__global__ void embed_kernel(EmbedArgs a) {
  const int token = static_cast<int>(blockIdx.x);
  for (int i = static_cast<int>(threadIdx.x); i < a.words.cols; i += kThreads) {
    float x = element(a.words, a.ids[token], i);
    if (a.positions.data != nullptr) x = x + element(a.positions, a.where[token], i);
    a.x[int64_t{token} * a.words.cols + i] = x;
  }
}

// The dot over `width` columns by the whole block: half-warp h takes the blocks h, h + 16, ... of 256 columns; their
// lanes meet in `lanes` (blocks, 16) and are added ascending. step(k, acc) as in half_warp_dot. The sum is in every
// thread.
template <class Step>
__device__ float block_dot(int width, float* lanes, const Step& step) {
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  const int blocks = (width + kBlock - 1) / kBlock;
  for (int b = static_cast<int>(threadIdx.x) / kLanes; b < blocks; b += kHalfWarps) {
    float acc = 0;
    for (int k = b * kBlock + lane; k < (b + 1) * kBlock && k < width; k += kLanes) acc = step(k, acc);
    lanes[b * kLanes + lane] = acc;
  }
  __syncthreads();
  float total = 0;
  for (int b = 0; b < blocks; ++b) total = total + lanes[b * kLanes + lane];
  __syncthreads();
  return __shfl_sync(kWholeWarp, tree_sum(total), 0, kLanes);
}

template <class Stored>
__global__ void __launch_bounds__(kThreads) normalise_kernel(NormArgs a) {
  extern __shared__ float lanes[];
  const int token = static_cast<int>(blockIdx.x);
  const float* x = a.x + int64_t{a.gather == nullptr ? token : a.gather[token]} * a.width;
  const auto n = static_cast<float>(a.width);
  float mean = 0;
  if (a.centred) mean = block_dot(a.width, lanes, [&](int k, float acc) { return __fmaf_rn(1.0f, x[k], acc); }) / n;
  const auto value = [&](int k) { return a.centred ? x[k] - mean : x[k]; };
  const float square =
      block_dot(a.width, lanes, [&](int k, float acc) { return __fmaf_rn(value(k), value(k), acc); }) / n;
  const float scale = 1.0f / sqrtf(square + a.epsilon);
  auto* y = static_cast<Stored*>(a.y.data) + int64_t{token} * a.y.stride;
  const int padded = a.y.bf16 ? round_up(a.width, kTile) : a.width;
  for (int i = static_cast<int>(threadIdx.x); i < padded; i += kThreads) {
    float v = 0;
    if (i < a.width) {
      v = value(i) * scale;
      v = a.beta == nullptr ? v * a.gamma[i] : __fmaf_rn(v, a.gamma[i], a.beta[i]);
    }
    store(y + i, v);
  }
}

__device__ float activated(Activation activation, float v, const float* up) {
  switch (activation) {
    case Activation::kSwiglu:
      return arithmetic::silu<DeviceSingle>(v) * *up;
    case Activation::kSquaredRelu:
      return arithmetic::squared_relu<DeviceSingle>(v);
    case Activation::kGeluErf:
      return arithmetic::gelu_erf<DeviceSingle>(v);
    default:
      return arithmetic::gelu_tanh<DeviceSingle>(v);
  }
}

template <class Stored>
__global__ void activate_kernel(ActivateArgs a) {
  const int i = static_cast<int>(blockIdx.x) * kThreads + static_cast<int>(threadIdx.x);
  const int padded = a.y.bf16 ? round_up(a.width, kTile) : a.width;
  if (i >= padded) return;
  for (int token = static_cast<int>(blockIdx.y); token < a.tokens; token += static_cast<int>(gridDim.y)) {
    float v = 0;
    if (i < a.width) {
      const float* row = a.fc1 + int64_t{token} * a.width * (a.activation == Activation::kSwiglu ? 2 : 1);
      v = activated(a.activation, row[i], row + a.width + i);
      if (a.factor != nullptr) v = v * a.factor[token];
    }
    store(static_cast<Stored*>(a.y.data) + int64_t{token} * a.y.stride + i, v);
  }
}

__global__ void add_kernel(const float* y, float* x, int64_t count) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i < count) x[i] = x[i] + y[i];
}

__global__ void add_experts_kernel(AddExpertsArgs a) {
  const int token = static_cast<int>(blockIdx.y);
  const int i = static_cast<int>(blockIdx.x) * kThreads + static_cast<int>(threadIdx.x);
  if (i >= a.hidden) return;
  float total = 0;
  for (int k = 0; k < a.topk; ++k) total = total + a.experts[(int64_t{token} * a.topk + k) * a.hidden + i];
  const int64_t at = int64_t{token} * a.hidden + i;
  if (a.shared != nullptr) {
    float shared = a.shared[at];
    if (a.gate != nullptr) shared = shared * arithmetic::sigmoid<DeviceSingle>(a.gate[token]);
    total = total + shared;
  }
  a.x[at] = a.x[at] + total;
}

unsigned blocks_for(int64_t count) { return static_cast<unsigned>((count + kThreads - 1) / kThreads); }

}  // namespace

void embed(const EmbedArgs& args, cudaStream_t stream) {
  if (args.tokens == 0) return;
  embed_kernel<<<static_cast<unsigned>(args.tokens), kThreads, 0, stream>>>(args);
  check_launch("embed");
}

void normalise(const NormArgs& args, cudaStream_t stream) {
  if (args.tokens == 0) return;
  const size_t lanes = static_cast<size_t>((args.width + kBlock - 1) / kBlock) * kLanes * sizeof(float);
  const auto tokens = static_cast<unsigned>(args.tokens);
  if (args.y.bf16) {
    normalise_kernel<Bfloat16><<<tokens, kThreads, lanes, stream>>>(args);
  } else {
    normalise_kernel<float><<<tokens, kThreads, lanes, stream>>>(args);
  }
  check_launch("normalise");
}

void activate(const ActivateArgs& args, cudaStream_t stream) {
  if (args.tokens == 0) return;
  constexpr int kMostRows = 65535;  // of a grid
  const dim3 grid(blocks_for(round_up(args.width, kTile)), static_cast<unsigned>(std::min(args.tokens, kMostRows)));
  if (args.y.bf16) {
    activate_kernel<Bfloat16><<<grid, kThreads, 0, stream>>>(args);
  } else {
    activate_kernel<float><<<grid, kThreads, 0, stream>>>(args);
  }
  check_launch("activate");
}

void add(const float* y, float* x, int64_t count, cudaStream_t stream) {
  if (count == 0) return;
  add_kernel<<<blocks_for(count), kThreads, 0, stream>>>(y, x, count);
  check_launch("add");
}

void add_experts(const AddExpertsArgs& args, cudaStream_t stream) {
  if (args.tokens == 0) return;
  const dim3 grid(blocks_for(args.hidden), static_cast<unsigned>(args.tokens));
  add_experts_kernel<<<grid, kThreads, 0, stream>>>(args);
  check_launch("add_experts");
}

}  // namespace assay::cuda
