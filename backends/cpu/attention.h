// Self-attention of a slice: heads prepared, keys and values stored, then every query over its past.
#pragma once

#include <cstddef>
#include <vector>

#include "backends/cpu/cpu_cache.h"
#include "backends/cpu/executor.h"
#include "backends/cpu/workspace.h"

namespace assay::cpu {

// cos and sin of every position so far asked for.
class RotaryTable {
 public:
  RotaryTable() = default;
  explicit RotaryTable(const model::ModelConfig& config);
  size_t half() const { return frequencies_.size(); }  // 0: no rotation
  void cover(size_t positions);
  const float* cosine(size_t position) const { return table_.data() + position * 2 * half(); }
  const float* sine(size_t position) const { return cosine(position) + half(); }

 private:
  std::vector<float> frequencies_;
  std::vector<float> table_;  // (positions, 2, half)
};

// Reads w.qkv, writes the cache and w.attended. The table covers the slice's positions.
void attend_slice(const model::ModelConfig& config, const Layer& layer, size_t layer_index, const RotaryTable& table,
                  CpuCache& cache, Executor& executor, Workspace& w);

}  // namespace assay::cpu
