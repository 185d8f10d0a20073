// In which order the rows of weights lie in a checkpoint's files, so that files are read front to back.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "backends/model/weights/weight_map.h"

namespace assay::model {

// Not thread-safe; `contents` must outlive it.
class StorageOrder {
 public:
  explicit StorageOrder(const CheckpointContents& contents) : contents_(contents) {}

  // File and byte offset of the chunk with the first element of row `row` of a present weight; {0, 0} where no chunk
  // has it. Exact where chunks are whole along all axes behind the first that is cut, else a chunk nearby.
  std::pair<uint32_t, uint64_t> place(const WeightRef& weight, int64_t row);

 private:
  using Corners = std::vector<std::pair<int64_t, size_t>>;  // (row-major index of its first element, chunk), ascending
  const Corners& corners_of(const TensorInfo& tensor);

  const CheckpointContents& contents_;
  std::map<const TensorInfo*, Corners> corners_;
};

}  // namespace assay::model
