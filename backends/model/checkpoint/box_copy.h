// Copying the common part of two boxes, any strides to row-major, as runs of evenly spaced elements.
#pragma once

#include <cstdint>
#include <vector>

#include "backends/model/checkpoint/tiling.h"

namespace assay::model {

// A loop nest over runs. All numbers count elements.
struct BoxCopy {
  std::vector<int64_t> counts;       // loop lengths, outermost first; the run is not among them
  std::vector<int64_t> src_strides;  // per loop
  std::vector<int64_t> dst_strides;  // per loop
  int64_t src_first = 0;
  int64_t dst_first = 0;
  int64_t run = 1;       // consecutive in the destination
  int64_t src_step = 1;  // between the elements of a run in the source; 1: consecutive there too
};

// Row-major strides of a shape, in elements.
std::vector<int64_t> row_major_strides(const std::vector<int64_t>& shape);

// The part of `from`, stored with `strides`, that lies in `to`, stored row-major; both are boxes of one tensor. False
// when they do not meet.
bool plan_copy(const Box& from, const std::vector<int64_t>& strides, const Box& to, BoxCopy& copy);

// Whether they meet; cheap.
bool boxes_meet(const Box& a, const Box& b);

// Calls fn(src, dst) with the first elements of every run, in row-major order.
template <class Fn>
void for_each_run(const BoxCopy& copy, Fn fn) {
  std::vector<int64_t> index(copy.counts.size(), 0);
  int64_t src = copy.src_first;
  int64_t dst = copy.dst_first;
  while (true) {
    fn(src, dst);
    size_t d = index.size();
    for (; d > 0; --d) {
      src += copy.src_strides[d - 1];
      dst += copy.dst_strides[d - 1];
      if (++index[d - 1] < copy.counts[d - 1]) break;
      src -= copy.counts[d - 1] * copy.src_strides[d - 1];
      dst -= copy.counts[d - 1] * copy.dst_strides[d - 1];
      index[d - 1] = 0;
    }
    if (d == 0) return;
  }
}

}  // namespace assay::model
