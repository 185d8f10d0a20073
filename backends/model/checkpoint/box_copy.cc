#include "backends/model/checkpoint/box_copy.h"

#include <algorithm>

namespace assay::model {

std::vector<int64_t> row_major_strides(const std::vector<int64_t>& shape) {
  std::vector<int64_t> strides(shape.size());
  int64_t stride = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    strides[d] = stride;
    stride *= std::max<int64_t>(shape[d], 1);
  }
  return strides;
}

bool boxes_meet(const Box& a, const Box& b) {
  for (size_t d = 0; d < a.sizes.size(); ++d) {  // outermost first: that is where boxes differ
    if (std::max(a.offsets[d], b.offsets[d]) >= std::min(a.offsets[d] + a.sizes[d], b.offsets[d] + b.sizes[d])) {
      return false;
    }
  }
  return true;
}

bool plan_copy(const Box& from, const std::vector<int64_t>& strides, const Box& to, BoxCopy& copy) {
  if (!boxes_meet(from, to)) return false;
  copy = {};
  const std::vector<int64_t> dst_strides = row_major_strides(to.sizes);
  for (size_t d = from.sizes.size(); d-- > 0;) {
    const int64_t begin = std::max(from.offsets[d], to.offsets[d]);
    const int64_t count = std::min(from.offsets[d] + from.sizes[d], to.offsets[d] + to.sizes[d]) - begin;
    copy.src_first += (begin - from.offsets[d]) * strides[d];
    copy.dst_first += (begin - to.offsets[d]) * dst_strides[d];
    if (count == 1) continue;
    const bool opens = copy.run == 1 && copy.counts.empty() && dst_strides[d] == 1;
    const bool extends =
        copy.run > 1 && copy.counts.empty() && dst_strides[d] == copy.run && strides[d] == copy.run * copy.src_step;
    if (opens) copy.src_step = strides[d];
    if (opens || extends) {
      copy.run *= count;
    } else {
      copy.counts.insert(copy.counts.begin(), count);
      copy.src_strides.insert(copy.src_strides.begin(), strides[d]);
      copy.dst_strides.insert(copy.dst_strides.begin(), dst_strides[d]);
    }
  }
  return true;
}

}  // namespace assay::model
