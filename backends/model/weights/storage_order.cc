#include "backends/model/weights/storage_order.h"

#include <algorithm>

namespace assay::model {
namespace {

// Row-major index of the element at `begin`, whose further indices are zero.
int64_t index_of(const std::vector<int64_t>& shape, const std::vector<int64_t>& begin) {
  int64_t index = 0;
  for (size_t d = 0; d < shape.size(); ++d) index = index * shape[d] + (d < begin.size() ? begin[d] : 0);
  return index;
}

}  // namespace

const StorageOrder::Corners& StorageOrder::corners_of(const TensorInfo& tensor) {
  Corners& corners = corners_[&tensor];
  if (!corners.empty()) return corners;
  for (size_t chunk = 0; chunk < tensor.chunks.size(); ++chunk) {
    corners.emplace_back(index_of(tensor.shape, tensor.chunks[chunk].offsets), chunk);
  }
  std::sort(corners.begin(), corners.end());
  return corners;
}

std::pair<uint32_t, uint64_t> StorageOrder::place(const WeightRef& weight, int64_t row) {
  for (const Piece& piece : weight.pieces) {
    if (row >= piece.rows) {
      row -= piece.rows;
      continue;
    }
    const TensorInfo* tensor = contents_.find(piece.key);
    if (tensor == nullptr) return {};
    std::vector<int64_t> begin = piece.leading;
    begin.push_back(row);
    const Corners& corners = corners_of(*tensor);
    const auto behind = std::ranges::upper_bound(corners, std::pair(index_of(tensor->shape, begin), SIZE_MAX));
    if (behind == corners.begin()) return {};
    const ItemPlace& place = tensor->places[std::prev(behind)->second];
    return {place.file, place.offset};
  }
  return {};
}

}  // namespace assay::model
