// When submitted requests come to the scheduler.
#pragma once

#include <cstddef>
#include <cstdint>

#include "plugins/engines/buffered/options.h"

namespace assay::engines {

// Requests arrive in the order of submission: all at once, some at each step, or as a Poisson process, whose gaps are
// drawn from (seed, number of the request) alone. Not thread-safe.
class Arrivals {
 public:
  explicit Arrivals(const BufferedOptions& options)
      : per_step_(options.requests_per_step > 0 ? static_cast<uint64_t>(options.requests_per_step) : 0),
        per_second_(per_step_ > 0 ? 0 : options.requests_per_second),
        seed_(static_cast<uint64_t>(options.seed)) {}

  // The next request that has not arrived yet has done so by step `step` (from 0) at `seconds` since the first step.
  bool due(uint64_t step, double seconds);
  // It has been taken; the one after it is next.
  void take();
  // When the next one arrives, in seconds since the first step; 0 where time does not matter.
  double next_seconds();

 private:
  uint64_t per_step_;
  double per_second_;
  uint64_t seed_;
  uint64_t taken_ = 0;
  double arrival_ = 0;  // seconds, of request `drawn_` - 1
  uint64_t drawn_ = 0;  // requests whose time is known
};

}  // namespace assay::engines
