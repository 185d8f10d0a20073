#include <algorithm>

#include "backends/cuda/kernels/activation.cuh"
#include "backends/cuda/kernels/dependent_launch.cuh"
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
#pragma unroll
    for (int i = 0; i < kBlock / kLanes; ++i) {
      const int k = b * kBlock + i * kLanes + lane;
      if (k < width) acc = step(k, acc);
    }
    lanes[b * kLanes + lane] = acc;
  }
  __syncthreads();
  float total = 0;
#pragma unroll 8
  for (int b = 0; b < blocks; ++b) total = total + lanes[b * kLanes + lane];
  __syncthreads();
  return __shfl_sync(kWholeWarp, tree_sum(total), 0, kLanes);
}

// The last step of a norm; v: column i, scaled.
__device__ float normalised(const NormArgs& a, float v, int i) {
  return a.beta == nullptr ? v * a.gamma[i] : __fmaf_rn(v, a.gamma[i], a.beta[i]);
}

// Norm of one token by the whole block; x: (width).
template <class Stored>
__device__ void normalise_row(const NormArgs& a, const float* x, int token, float* lanes) {
  const auto n = static_cast<float>(a.width);
  float mean = 0;
  if (a.centred) mean = block_dot(a.width, lanes, [&](int k, float acc) { return __fmaf_rn(1.0f, x[k], acc); }) / n;
  const auto value = [&](int k) { return a.centred ? x[k] - mean : x[k]; };
  const float square =
      block_dot(a.width, lanes, [&](int k, float acc) { return __fmaf_rn(value(k), value(k), acc); }) / n;
  const float scale = 1.0f / sqrtf(square + a.epsilon);
  auto* y = static_cast<Stored*>(a.y.data) + int64_t{token} * a.y.stride;
  const int padded = a.y.bf16 ? round_up(a.width, kTile) : a.width;
#pragma unroll 8
  for (int i = static_cast<int>(threadIdx.x); i < padded; i += kThreads) {
    store(y + i, i < a.width ? normalised(a, value(i) * scale, i) : 0.0f);
  }
}

template <class Stored>
__global__ void __launch_bounds__(kThreads) normalise_kernel(NormArgs a) {
  extern __shared__ float lanes[];
  start_kernel_after();
  const int token = static_cast<int>(blockIdx.x);
  normalise_row<Stored>(a, a.x + int64_t{a.gather == nullptr ? token : a.gather[token]} * a.width, token, lanes);
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
      v = activated(a.activation, row[i], a.activation == Activation::kSwiglu ? row[a.width + i] : 0.0f);
      if (a.factor != nullptr) v = v * a.factor[token];
    }
    store(static_cast<Stored*>(a.y.data) + int64_t{token} * a.y.stride + i, v);
  }
}

__global__ void add_kernel(const float* y, float* x, int64_t count) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i < count) x[i] = x[i] + y[i];
}

// Columns i .. i + kWide - 1 of what x[t] is from now on.
template <int kWide>
__device__ void add_experts_of(const AddExpertsArgs& a, int token, int i, float (&x)[kWide]) {
  const auto read = [&](const float* from, float(&v)[kWide]) {
    if constexpr (kWide == 4) {
      const float4 four = *reinterpret_cast<const float4*>(from);
      v[0] = four.x, v[1] = four.y, v[2] = four.z, v[3] = four.w;
    } else {
      v[0] = *from;
    }
  };
  float total[kWide] = {};
#pragma unroll 8
  for (int k = 0; k < a.topk; ++k) {
    float v[kWide];
    read(a.experts + (int64_t{token} * a.topk + k) * a.hidden + i, v);
#pragma unroll
    for (int n = 0; n < kWide; ++n) total[n] = total[n] + v[n];
  }
  const int64_t at = int64_t{token} * a.hidden + i;
  if (a.shared != nullptr) {
    float shared[kWide];
    read(a.shared + at, shared);
#pragma unroll
    for (int n = 0; n < kWide; ++n) {
      if (a.gate != nullptr) shared[n] = shared[n] * arithmetic::sigmoid<DeviceSingle>(a.gate[token]);
      total[n] = total[n] + shared[n];
    }
  }
  read(a.x + at, x);
#pragma unroll
  for (int n = 0; n < kWide; ++n) {
    x[n] = x[n] + total[n];
    a.x[at + n] = x[n];
  }
}

// One block a token. Stored: of the norm that follows, if a.x of it is set; then the row stays in shared memory.
template <class Stored, int kWide>
__global__ void __launch_bounds__(kThreads) add_experts_kernel(AddExpertsArgs a, NormArgs norm) {
  extern __shared__ float4 row[];  // (hidden), then block_dot's lanes
  const int token = static_cast<int>(blockIdx.x);
  auto* const kept = reinterpret_cast<float*>(row);
  start_kernel_after();
  for (int i = static_cast<int>(threadIdx.x) * kWide; i < a.hidden; i += kThreads * kWide) {
    float x[kWide];
    add_experts_of<kWide>(a, token, i, x);
    for (int n = 0; n < kWide && norm.x != nullptr; ++n) kept[i + n] = x[n];
  }
  if (norm.x == nullptr) return;
  __syncthreads();
  normalise_row<Stored>(norm, kept, token, kept + round_up(a.hidden, 4));
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

void add_experts(const AddExpertsArgs& args, const NormArgs* norm, cudaStream_t stream) {
  if (args.tokens == 0) return;
  constexpr size_t kMostShared = size_t{48} << 10;
  size_t shared = 0;
  if (norm != nullptr) {
    const auto blocks = static_cast<size_t>((args.hidden + kBlock - 1) / kBlock);
    shared = (static_cast<size_t>(round_up(args.hidden, 4)) + blocks * kLanes) * sizeof(float);
    if (shared > kMostShared) {
      add_experts(args, nullptr, stream);
      return normalise(*norm, stream);
    }
  }
  const auto tokens = static_cast<unsigned>(args.tokens);
  const NormArgs after = norm != nullptr ? *norm : NormArgs{};
  if (args.hidden % 4 != 0) {
    const auto kernel = after.y.bf16 ? add_experts_kernel<Bfloat16, 1> : add_experts_kernel<float, 1>;
    kernel<<<tokens, kThreads, shared, stream>>>(args, after);
  } else {
    const auto kernel = after.y.bf16 ? add_experts_kernel<Bfloat16, 4> : add_experts_kernel<float, 4>;
    kernel<<<tokens, kThreads, shared, stream>>>(args, after);
  }
  check_launch("add_experts");
}

}  // namespace assay::cuda
