// Attention of one query over its past, in the one order that every backend keeps.
//
// Positions are cut into splits of 256 at absolute positions 0, 256, 512 ... Per split, ascending:
//   score_j = dot(q, k_j) * scale;   m = max score;   e_j = exp(score_j - m);   l = sum(e) (dot.h);   o = fma(e_j, v_j,
//   o)
// and over the splits, ascending: M = max m, f = exp(m - M), L = fma(l, f, L), O = fma(o, f, O); the result is O / L.
#pragma once

#include <cstddef>

namespace assay::arithmetic {

inline constexpr size_t kSplit = 256;

}  // namespace assay::arithmetic
