// Where a fault strikes: chosen by a seed, or everywhere where none is given.
#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
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

  // The same seed over another number of requests.
  Places among(size_t requests) const { return {seed_, requests}; }
  // True for half of the requests (or one more), the victim the first of them.
  bool strikes_half(size_t request) const {
    return !seed_ || requests_ == 0 || (request + requests_ - victim()) % requests_ <= requests_ / 2;
  }

  // 0 .. n - 1; n >= 1. Without a seed: the middle. Seeds of one victim choose unlike values until all are used up.
  // `what` tells choices of one fault apart.
  size_t pick(size_t n, uint64_t what = 0) const {
    if (!seed_) return n / 2;
    uint64_t z = victim() + (what + 1) * 0x9E3779B97F4A7C15U;  // splitmix64
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    size_t stride = 1 + n * 5 / 8;
    while (std::gcd(stride, n) != 1) ++stride;
    const uint64_t turn = requests_ > 0 ? *seed_ / requests_ : *seed_;
    return static_cast<size_t>(((z ^ (z >> 31)) % n + turn % n * stride) % n);
  }
  // 0 .. n - 1, unlike for n consecutive seeds: of amounts that have nothing to do with a request.
  size_t amount(size_t n) const { return seed_ ? static_cast<size_t>(*seed_ % n) : n / 2; }

 private:
  std::optional<uint64_t> seed_;
  size_t requests_ = 0;
};

}  // namespace assay::engines
