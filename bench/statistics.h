// The median, which every bench reports.
#pragma once

#include <algorithm>
#include <vector>

namespace assay::bench {

// The upper one of two middle values. `values` is not empty.
inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace assay::bench
