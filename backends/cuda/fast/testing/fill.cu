#include <cuda_bf16.h>

#include "backends/cuda/fast/testing/random_model.h"

namespace assay::cuda::fast {
namespace {

__device__ float uniform(uint64_t i, uint64_t seed) {
  uint64_t x = i * 0x9e3779b97f4a7c15ull + seed;
  x ^= x >> 33;
  x *= 0xff51afd7ed558ccdull;
  x ^= x >> 33;
  x *= 0xc4ceb9fe1a85ec53ull;
  x ^= x >> 33;
  return static_cast<float>(static_cast<int32_t>(static_cast<uint32_t>(x))) * (1.0f / 2147483648.0f);
}

__global__ void fill_bf16_kernel(__nv_bfloat16* to, size_t count, float scale, uint64_t seed) {
  const size_t stride = static_cast<size_t>(gridDim.x) * blockDim.x;
  for (size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x; i < count; i += stride) {
    to[i] = __float2bfloat16_rn(uniform(i, seed) * scale);
  }
}

__global__ void fill_float_kernel(float* to, size_t count, float middle, float spread, uint64_t seed) {
  const size_t stride = static_cast<size_t>(gridDim.x) * blockDim.x;
  for (size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x; i < count; i += stride) {
    to[i] = middle + uniform(i, seed) * spread;
  }
}

}  // namespace

void fill_bf16(void* to, size_t count, float scale, uint64_t seed, cudaStream_t stream) {
  fill_bf16_kernel<<<2048, 256, 0, stream>>>(static_cast<__nv_bfloat16*>(to), count, scale, seed);
}

void fill_float(float* to, size_t count, float middle, float spread, uint64_t seed, cudaStream_t stream) {
  fill_float_kernel<<<64, 256, 0, stream>>>(to, count, middle, spread, seed);
}

}  // namespace assay::cuda::fast
