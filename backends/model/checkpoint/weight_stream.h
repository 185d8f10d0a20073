// Seeded normal weights, computed from (seed, tensor, element) alone: any chunking and thread count gives the same.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "backends/model/checkpoint/dtype.h"

namespace assay::model {

// (65536) of a dtype: mean + std * z for the quantiles z of the standard normal (|z| < 4.33), rounded.
using WeightTable = std::shared_ptr<const std::vector<std::byte>>;
WeightTable make_weight_table(double mean, double std, Dtype dtype);

// Element i is an entry of `table` chosen by a hash of (seed, key, i); so two dtypes hold the same weights up to
// rounding. Immutable, thread-safe.
class WeightStream {
 public:
  WeightStream(uint64_t seed, std::string_view key, WeightTable table, Dtype dtype);

  // Elements [first, first + count) to `out`, any alignment of `first`; `out` is aligned for the dtype.
  void fill(int64_t first, int64_t count, void* out) const;

 private:
  template <class T>
  void fill_as(int64_t first, int64_t count, T* out) const;

  uint64_t stream_;
  Dtype dtype_;
  WeightTable table_;
};

}  // namespace assay::model
