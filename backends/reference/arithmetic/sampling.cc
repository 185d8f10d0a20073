#include "backends/reference/arithmetic/sampling.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "backends/reference/arithmetic/precise.h"

namespace assay::arithmetic {
namespace {

// Finaliser of SplitMix64 (Steele, Lea, Flood 2014).
uint64_t mix(uint64_t z) {
  z += 0x9e3779b97f4a7c15ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

struct Candidate {
  int32_t id;
  double weight;  // e^(scaled logit - largest), not normalised
};

bool heavier(const Candidate& a, const Candidate& b) {
  return a.weight > b.weight || (a.weight == b.weight && a.id < b.id);
}

// Drops what the filters drop. `logits` are the raw ones: top_k compares them, so that equals of the k-th all stay.
void filter(std::span<const float> logits, const assay_sampling& sampling, std::vector<Candidate>& candidates) {
  if (sampling.top_k > 1) {
    std::vector<float> sorted(logits.begin(), logits.end());
    const auto kth = sorted.begin() + (sampling.top_k - 1);
    std::nth_element(sorted.begin(), kth, sorted.end(), [](float a, float b) { return a > b; });
    const float smallest = *kth;
    std::erase_if(candidates, [&](const Candidate& c) { return logits[static_cast<size_t>(c.id)] < smallest; });
  } else if (sampling.top_p > 0) {
    std::sort(candidates.begin(), candidates.end(), heavier);
    double total = 0;
    for (const Candidate& c : candidates) total += c.weight;
    double before = 0;
    size_t kept = 0;
    while (kept < candidates.size() && (kept == 0 || before <= sampling.top_p)) {
      before += candidates[kept].weight / total;
      ++kept;
    }
    candidates.resize(kept);
  }
}

}  // namespace

double uniform_draw(uint64_t seed, uint64_t prompt_index, uint64_t position) {
  const uint64_t bits = mix(mix(mix(seed) ^ prompt_index) ^ position);
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

int32_t sample_token(std::span<const float> logits, const assay_sampling& sampling, uint64_t position) {
  size_t best = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    if (std::isnan(logits[i])) return static_cast<int32_t>(i);
    if (logits[i] > logits[best]) best = i;
  }
  if (sampling.top_k == 1) return static_cast<int32_t>(best);
  const auto largest = static_cast<double>(logits[best]);
  if (std::isinf(largest)) return static_cast<int32_t>(best);
  std::vector<Candidate> candidates(logits.size());
  for (size_t i = 0; i < logits.size(); ++i) {
    const double scaled = (static_cast<double>(logits[i]) - largest) / sampling.temperature;
    candidates[i] = {static_cast<int32_t>(i), scaled > -700 ? precise_exp(scaled) : 0.0};
  }
  filter(logits, sampling, candidates);
  double total = 0;
  for (const Candidate& c : candidates) total += c.weight;
  const double target = uniform_draw(sampling.seed, sampling.prompt_index, position) * total;
  double cumulative = 0;
  int32_t last = candidates.front().id;
  for (const Candidate& c : candidates) {
    if (c.weight == 0) continue;
    cumulative += c.weight;
    last = c.id;
    if (target < cumulative) return c.id;
  }
  return last;  // rounding of the sum: the last one with any weight
}

}  // namespace assay::arithmetic
