// What benches have in common: seconds and medians.
#pragma once

#include <algorithm>
#include <chrono>
#include <vector>

namespace assay::bench {

template <class Work>
double seconds_of(const Work& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// The upper one of two middle values. `values` is not empty.
inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace assay::bench
