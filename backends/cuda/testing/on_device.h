// Test support: a test that needs a GPU, and numbers for it.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "backends/cuda/runtime/device.h"
#include "backends/cuda/runtime/stream.h"

namespace assay::cuda {

// Skips, with find_device's reason ("no CUDA device: ..."), where there is none.
class OnDevice : public ::testing::Test {
 protected:
  void SetUp() override {
    const Result<Device> device = find_device();
    if (!device) GTEST_SKIP() << device.status().message();
    use_device(*device);
  }
};

// Numbers of several magnitudes, both signs; the same for the same seed.
inline std::vector<float> some_floats(size_t count, uint32_t seed) {
  std::vector<float> values(count);
  for (float& value : values) {
    seed = seed * 1664525u + 1013904223u;
    const auto fraction = static_cast<float>(static_cast<int32_t>(seed >> 8) - (1 << 23));
    value = fraction * (seed >> 30 == 0 ? 0x1p-26f : 0x1p-23f);
  }
  return values;
}

template <class T>
std::array<std::byte, sizeof(T)> bytes_of(const T& value) {
  return std::bit_cast<std::array<std::byte, sizeof(T)>>(value);
}

// Success when every element has the same bits; else the first that has not, and how many.
template <class T>
::testing::AssertionResult same_bits(const std::vector<T>& seen, const std::vector<T>& wanted) {
  if (seen.size() != wanted.size() || wanted.empty()) {
    return ::testing::AssertionFailure() << seen.size() << " elements, wanted " << wanted.size() << ", at least one";
  }
  size_t different = 0;
  size_t first = 0;
  for (size_t i = wanted.size(); i-- > 0;) {
    if (bytes_of(seen[i]) == bytes_of(wanted[i])) continue;
    ++different;
    first = i;
  }
  if (different == 0) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << different << " of " << wanted.size() << " differ, first at " << first << ": "
                                       << seen[first] << ", wanted " << wanted[first];
}

// The same, but any NaN equals any other: their bits differ between processors and devices.
inline ::testing::AssertionResult same_numbers(std::vector<float> seen, std::vector<float> wanted) {
  for (std::vector<float>* values : {&seen, &wanted}) {
    for (float& v : *values) v = v == v ? v : std::numeric_limits<float>::quiet_NaN();
  }
  return same_bits(seen, wanted);
}

}  // namespace assay::cuda
