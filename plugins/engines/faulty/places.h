// Where a fault strikes: chosen by a seed, or everywhere where none is given.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace assay::engines {

// A value: the same seed and number of requests give the same places.
class Places {
 public:
  Places() = default;
  // requests: of the case, numbered from 0 in the order of submission.
  Places(std::optional<uint64_t> seed, size_t requests) : seed_(seed), requests_(requests) {}

  bool seeded() const { return seed_.has_value(); }
  // The one request that is struck, where there is a seed and at least one request.
  size_t victim() const { return requests_ > 0 ? static_cast<size_t>(seed_.value_or(0) % requests_) : 0; }
  bool strikes(size_t request) const { return !seed_ || request == victim(); }
  size_t requests() const { return requests_; }

  // 0 .. n - 1; n >= 1. Without a seed: the middle. `what` tells choices of one fault apart.
  size_t pick(size_t n, uint64_t what = 0) const {
    if (!seed_) return n / 2;
    uint64_t z = *seed_ + (what + 1) * 0x9E3779B97F4A7C15U;  // splitmix64
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    return static_cast<size_t>((z ^ (z >> 31)) % n);
  }

 private:
  std::optional<uint64_t> seed_;
  size_t requests_ = 0;
};

}  // namespace assay::engines
