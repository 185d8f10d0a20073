// The reads whose speed the CUDA benchmarks call the read bandwidth.
#pragma once

#include <cstddef>
#include <cstdint>

namespace assay::bench {

// `count` times 16 bytes, each once, by any grid, the last few (less than 8 a thread) left out. `sink`, a word of
// device memory, keeps the reads in the code.
__global__ inline void read_all(const uint4* from, size_t count, uint32_t* sink) {
  uint32_t x = 0;
  const size_t stride = size_t{gridDim.x} * blockDim.x;
  size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x;
  for (; i + 7 * stride < count; i += 8 * stride) {
    uint4 v[8];
#pragma unroll
    for (int j = 0; j < 8; ++j) v[j] = __ldcs(from + i + j * stride);
#pragma unroll
    for (int j = 0; j < 8; ++j) x ^= v[j].x ^ v[j].y ^ v[j].z ^ v[j].w;
  }
  if (x == 0x12345678u) *sink = x;
}

}  // namespace assay::bench
