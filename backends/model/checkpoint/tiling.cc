#include "backends/model/checkpoint/tiling.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace assay::model {
namespace {

// Pairs compared for the message of a failed check; beyond it the message is less exact.
constexpr size_t kMaxPairs = size_t{1} << 22;

bool overlap(const Box& a, const Box& b) {
  for (size_t d = 0; d < a.offsets.size(); ++d) {
    const int64_t begin = std::max(a.offsets[d], b.offsets[d]);
    const int64_t end = std::min(a.offsets[d] + a.sizes[d], b.offsets[d] + b.sizes[d]);
    if (begin >= end) return false;
  }
  return true;
}

std::string box_text(const Box& box) { return shape_text(box.offsets) + "+" + shape_text(box.sizes); }

// Adds the corners of `box`, each with the sign of its parity, as linear indices in a grid of shape + 1.
void add_corners(const std::vector<int64_t>& shape, const Box& box, int sign,
                 std::vector<std::pair<int64_t, int>>& corners) {
  const size_t rank = shape.size();
  for (unsigned mask = 0; mask < (1U << rank); ++mask) {
    int64_t index = 0;
    int parity = sign;
    for (size_t d = 0; d < rank; ++d) {
      const bool far = ((mask >> d) & 1U) != 0;
      index = index * (shape[d] + 1) + box.offsets[d] + (far ? box.sizes[d] : 0);
      if (far) parity = -parity;
    }
    corners.emplace_back(index, parity);
  }
}

Status explain(const std::string& key, const std::vector<int64_t>& shape, const std::vector<Box>& boxes) {
  size_t pairs = 0;
  for (size_t i = 0; i < boxes.size(); ++i) {
    for (size_t k = 0; k < i && pairs < kMaxPairs; ++k, ++pairs) {
      if (overlap(boxes[k], boxes[i])) {
        return invalid(fmt::format("tensor '{}' of shape {}: chunks {} and {} overlap; expected chunks that tile it",
                                   key, shape_text(shape), box_text(boxes[k]), box_text(boxes[i])));
      }
    }
  }
  return invalid(fmt::format("tensor '{}' of shape {}: its {} chunks leave a gap; expected chunks that tile it", key,
                             shape_text(shape), boxes.size()));
}

Status check_box(const std::string& key, const std::vector<int64_t>& shape, const Box& box) {
  bool fits = box.offsets.size() == shape.size() && box.sizes.size() == shape.size();
  for (size_t d = 0; fits && d < shape.size(); ++d) {
    fits = box.offsets[d] >= 0 && box.sizes[d] >= 0 && box.offsets[d] <= shape[d] &&
           box.sizes[d] <= shape[d] - box.offsets[d];
  }
  if (fits) return {};
  return invalid(
      fmt::format("tensor '{}' of shape {}: chunk {} is out of bounds", key, shape_text(shape), box_text(box)));
}

}  // namespace

int64_t element_count(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  bool empty = false;
  for (int64_t size : shape) {
    if (size < 0) return -1;
    if (size == 0) {
      empty = true;
    } else if (__builtin_mul_overflow(count, size, &count) || count >> 62 != 0) {
      return -1;
    }
  }
  return empty ? 0 : count;
}

// The signed corners of a box are the mixed difference of its indicator function, which determines the function. So
// the boxes tile the tensor if and only if their signed corners add up to those of the tensor.
Status check_tiling(const std::string& key, const std::vector<int64_t>& shape, const std::vector<Box>& boxes) {
  if (shape.size() > kMaxRank) {
    return unsupported(fmt::format("tensor '{}' has {} dimensions; at most {} are read", key, shape.size(), kMaxRank));
  }
  std::vector<int64_t> grid = shape;
  for (int64_t& size : grid) size = size < 0 || size == INT64_MAX ? -1 : size + 1;
  if (element_count(grid) < 0) {
    return invalid(fmt::format("tensor '{}': shape {} is impossible", key, shape_text(shape)));
  }
  for (const Box& box : boxes) {
    if (Status s = check_box(key, shape, box); !s.ok()) return s;
  }
  const Box whole{std::vector<int64_t>(shape.size(), 0), shape};
  if (boxes.size() == 1 && boxes[0].sizes == shape) return {};
  std::vector<std::pair<int64_t, int>> corners;
  corners.reserve((boxes.size() + 1) << shape.size());
  for (const Box& box : boxes) add_corners(shape, box, 1, corners);
  add_corners(shape, whole, -1, corners);
  std::sort(corners.begin(), corners.end());
  for (size_t i = 0; i < corners.size();) {
    int64_t sum = 0;
    const int64_t index = corners[i].first;
    for (; i < corners.size() && corners[i].first == index; ++i) sum += corners[i].second;
    if (sum != 0) return explain(key, shape, boxes);
  }
  return {};
}

std::string shape_text(const std::vector<int64_t>& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

}  // namespace assay::model
