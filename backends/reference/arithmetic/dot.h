// The one definition of a sum of products. Every backend computes exactly this, whatever its vectors look like.
//
//   lane l in 0..15 takes the elements k with k mod 16 == l;
//   K is cut into blocks of 256; within a block a lane starts from +0 and does acc = fma(w[k], x[k], acc) ascending;
//   K is padded to a multiple of 16 with w = x = 0;
//   the blocks' lanes are added ascending to totals that start from +0;
//   the 16 totals are added as a tree: l with l+8, then +4, then +2, then +1.
#pragma once

#include <cmath>
#include <cstddef>

namespace assay::arithmetic {

inline constexpr size_t kLanes = 16;
inline constexpr size_t kBlock = 256;

inline float tree_sum(const float lanes[kLanes]) {
  float s[kLanes];
  for (size_t l = 0; l < kLanes; ++l) s[l] = lanes[l];
  for (size_t width = kLanes / 2; width > 0; width /= 2) {
    for (size_t l = 0; l < width; ++l) s[l] = s[l] + s[l + width];
  }
  return s[0];
}

// sum of w(k) * x(k), k in [0, count); w and x are callables float(size_t).
template <class W, class X>
float dot(size_t count, const W& w, const X& x) {
  float totals[kLanes] = {};
  for (size_t block = 0; block < count; block += kBlock) {
    float lanes[kLanes] = {};
    for (size_t k = block; k < block + kBlock && k < count; k += kLanes) {
      for (size_t l = 0; l < kLanes; ++l) {
        const bool inside = k + l < count;
        lanes[l] = std::fma(inside ? w(k + l) : 0.0f, inside ? x(k + l) : 0.0f, lanes[l]);
      }
    }
    for (size_t l = 0; l < kLanes; ++l) totals[l] = totals[l] + lanes[l];
  }
  return tree_sum(totals);
}

inline float dot(const float* w, const float* x, size_t count) {
  return dot(
      count, [w](size_t k) { return w[k]; }, [x](size_t k) { return x[k]; });
}

// The plain sum is the dot with ones: fma(1, x, acc) is acc + x.
inline float sum(const float* x, size_t count) {
  return dot(
      count, [](size_t) { return 1.0f; }, [x](size_t k) { return x[k]; });
}

}  // namespace assay::arithmetic
