#include "backends/cuda/vendor/row_equality.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <vector>

#include "backends/cuda/runtime/buffer.h"

namespace assay::cuda::vendor {
namespace {

// bf16 numbers of both signs and sixteen magnitudes around 1.
std::vector<uint16_t> some_inputs(size_t count) {
  std::vector<uint16_t> values(count);
  uint32_t seed = 1;
  for (uint16_t& value : values) {
    seed = seed * 1664525u + 1013904223u;
    constexpr uint32_t kExponent = 119;  // 2^-8
    value = static_cast<uint16_t>((seed >> 31) << 15 | (kExponent + (seed >> 27 & 15u)) << 7 | (seed >> 8 & 127u));
  }
  return values;
}

}  // namespace

bool rows_are_equal(int rows, int cols, int most, const Product& product) {
  const auto width = static_cast<size_t>(cols);
  const auto height = static_cast<size_t>(rows);
  const DeviceBuffer<uint16_t> x = upload(some_inputs(static_cast<size_t>(most) * width));
  DeviceBuffer<float> y(static_cast<size_t>(most) * height);
  std::vector<float> alone(height);
  std::vector<float> row(height);
  const auto one_row = [&](std::vector<float>& to, const float* from) {
    check(cudaMemcpy(to.data(), from, height * sizeof(float), cudaMemcpyDeviceToHost), "cudaMemcpy");
  };
  std::set<int> sizes{most};
  for (const int tokens : {7, 64, 200, 300, 600, 1500}) sizes.insert(std::min(tokens, most));
  for (const int tokens : sizes) {
    for (const int place : {0, tokens / 2, tokens - 1}) {
      product({rows, cols, 1, cols, rows}, x.data() + static_cast<size_t>(place) * width, y.data());
      one_row(alone, y.data());
      product({rows, cols, tokens, cols, rows}, x.data(), y.data());
      one_row(row, y.data() + static_cast<size_t>(place) * height);
      if (std::memcmp(alone.data(), row.data(), height * sizeof(float)) != 0) return false;
    }
  }
  return true;
}

}  // namespace assay::cuda::vendor
