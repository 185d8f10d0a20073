// Cosines and sines of every position so far asked for, computed on the host (backends/reference/arithmetic/precise.h).
#pragma once

#include <vector>

#include "backends/cuda/runtime/buffer.h"
#include "backends/cuda/runtime/stream.h"
#include "backends/model/config/model_config.h"

namespace assay::cuda {

class RotaryTable {
 public:
  explicit RotaryTable(const model::ModelConfig& config);
  size_t half() const { return frequencies_.size(); }  // 0: no rotation
  // Positions 0 .. positions-1 are there from now on. Waits when the table grows.
  void cover(size_t positions, const Stream& stream);
  const float* data() const { return device_.data(); }  // (positions, 2, half): cosines, then sines

 private:
  std::vector<float> frequencies_;
  std::vector<float> host_;
  DeviceBuffer<float> device_;
};

}  // namespace assay::cuda
