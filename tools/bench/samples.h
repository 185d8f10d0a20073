// Repeated measurements of one thing.
#pragma once

#include <algorithm>
#include <vector>

namespace assay::bench {

// Seconds, one a round; never empty where a measurement succeeded.
struct Samples {
  std::vector<double> seconds;

  double median() const {  // the upper one of two middle values
    std::vector<double> sorted = seconds;
    std::sort(sorted.begin(), sorted.end());
    return sorted[sorted.size() / 2];
  }
  double least() const { return *std::min_element(seconds.begin(), seconds.end()); }
  double most() const { return *std::max_element(seconds.begin(), seconds.end()); }
};

}  // namespace assay::bench
