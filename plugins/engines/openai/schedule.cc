#include "plugins/engines/openai/schedule.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace assay::engines::openai {
namespace {

// SplitMix64.
uint64_t mixed(uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

// Uniform in (0, 1].
double uniform(uint64_t seed, uint64_t number) {
  return static_cast<double>((mixed(mixed(seed) ^ number) >> 11) + 1) * 0x1p-53;
}

}  // namespace

std::vector<Arrival> schedule(size_t count, const OpenaiOptions& options) {
  const auto seed = static_cast<uint64_t>(options.seed);
  std::vector<Arrival> arrivals(count);
  for (size_t i = 0; i < count; ++i) arrivals[i].place = i;
  if (options.order == "reversed") std::reverse(arrivals.begin(), arrivals.end());
  if (options.order == "shuffled") {
    for (size_t i = count; i > 1; --i) {
      const auto other = static_cast<size_t>(mixed(mixed(seed + 1) ^ i) % i);
      std::swap(arrivals[i - 1], arrivals[other]);
    }
  }
  double now = 0;
  for (size_t i = 0; options.requests_per_second > 0 && i < count; ++i) {
    if (i > 0) now -= std::log(uniform(seed, i)) / options.requests_per_second;
    arrivals[i].seconds = now;
  }
  return arrivals;
}

}  // namespace assay::engines::openai
