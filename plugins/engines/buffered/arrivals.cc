#include "plugins/engines/buffered/arrivals.h"

#include <cmath>

namespace assay::engines {
namespace {

// splitmix64 of the sum, as a number in (0, 1].
double draw(uint64_t seed, uint64_t number) {
  uint64_t z = seed + (number + 1) * 0x9E3779B97F4A7C15U;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
  return (static_cast<double>((z ^ (z >> 31)) >> 11) + 1) * 0x1p-53;
}

}  // namespace

bool Arrivals::due(uint64_t step, double seconds) {
  if (per_step_ > 0) return taken_ / per_step_ <= step;
  return next_seconds() <= seconds;
}

void Arrivals::take() { ++taken_; }

double Arrivals::next_seconds() {
  if (!(per_second_ > 0)) return 0;
  for (; drawn_ <= taken_; ++drawn_) arrival_ += -std::log(draw(seed_, drawn_)) / per_second_;  // exponential gaps
  return arrival_;
}

}  // namespace assay::engines
