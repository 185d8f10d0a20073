// Weights that the device makes up: the same for the same seed, tensor and place, whatever the layout.
#pragma once

#include <cstdint>

#include "backends/cuda/kernels/types.h"

namespace assay::cuda {

// Number `index` of the stream `stream` of `seed`: the sum of four 16-bit draws, scaled to mean 0 and variance 1 (so
// between -3.47 and 3.47, close to normal). Exact in every step but one rounding.
constexpr float random_number(uint64_t seed, uint64_t stream, uint64_t index) {
  uint64_t bits = (seed * 0x9e3779b97f4a7c15ull ^ stream) * 0xbf58476d1ce4e5b9ull + index;
  for (int round = 0; round < 2; ++round) {  // Stafford's mix 13 of splitmix64, after one multiplication
    bits ^= bits >> 30;
    bits *= 0xbf58476d1ce4e5b9ull;
    bits ^= bits >> 27;
    bits *= 0x94d049bb133111ebull;
    bits ^= bits >> 31;
  }
  const auto part = [bits](int shift) { return static_cast<int32_t>(bits >> shift & 0xffffu); };
  constexpr float kScale = 2.6429e-5f;  // 1 / sqrt(4 * 65536^2 / 12)
  return static_cast<float>(part(0) + part(16) + part(32) + part(48) - 2 * 0xffff) * kScale;
}

// `count` matrices of one shape, one behind the other: element (row, col) of the m-th is number
// (m * rows + row) * cols + col of the stream, times `scale`, rounded to the matrix's number. Padding is zero before.
struct RandomMatrices {
  Matrix first = {};
  int64_t count = 1;
  float scale = 0;
  uint64_t seed = 0;
  uint64_t stream = 0;
};
void fill_random(const RandomMatrices& args, cudaStream_t stream);

// Numbers middle + scale * random_number(), in bf16 arithmetic rounded, then plus `added`.
struct RandomVector {
  float* to = nullptr;
  int64_t count = 0;
  float middle = 0;
  float scale = 0;
  bool rounded = false;  // to bf16
  float added = 0;
  uint64_t seed = 0;
  uint64_t stream = 0;
};
void fill_random(const RandomVector& args, cudaStream_t stream);

}  // namespace assay::cuda
