// Do boxes tile a tensor exactly?
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "assay/status.h"

namespace assay::model {

// An axis-aligned box: [offset, offset + size) on every axis; both have the tensor's rank.
struct Box {
  std::vector<int64_t> offsets;
  std::vector<int64_t> sizes;
};

inline constexpr size_t kMaxRank = 8;

// Number of elements; -1 when a dimension is negative or the product leaves 62 bits.
int64_t element_count(const std::vector<int64_t>& shape);

// ok when the boxes cover every element of `shape` exactly once. kInvalid names `key`, the box and whether there is an
// overlap, a gap or a box out of bounds; kUnsupported beyond kMaxRank. O(n 2^rank log n) for n boxes.
Status check_tiling(const std::string& key, const std::vector<int64_t>& shape, const std::vector<Box>& boxes);

// "[4, 64, 256]".
std::string shape_text(const std::vector<int64_t>& shape);

}  // namespace assay::model
