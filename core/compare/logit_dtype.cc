#include "core/compare/logit_dtype.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "core/compare/ulp.h"

namespace assay::compare {
namespace {

constexpr double kRounding = 4e-6;   // of the difference of two fp32 logprobs of magnitude < 16
constexpr double kLeastLogit = 0.5;  // smaller logits have ULPs near the error of Z
constexpr size_t kLeastSamples = 12;
constexpr size_t kMostSteps = 4096;  // enough for any answer

// A generated position of the golden with what its logits are likely to be.
struct Sample {
  double logit = 0;  // golden logprob + Z of the rerun
  double delta = 0;  // |golden - rerun| of the logprob, nats
};

// Differences of neighbours in a top-n list with the smaller logit's magnitude (1 where Z is not known).
struct Step {
  double difference = 0;
  double magnitude = 1;
};

std::optional<double> z_of(const RerunPosition& position) {
  if (!position.golden_logit || !position.golden_logprob) return std::nullopt;
  return *position.golden_logit - *position.golden_logprob;
}

// Steps of one position's list; `z` nullopt: not known.
void add_steps(const TopEntry* entries, size_t count, std::optional<double> z, std::vector<Step>& steps) {
  for (size_t i = 1; i < count; ++i) {
    const double a = entries[i - 1].logprob;
    const double b = entries[i].logprob;
    if (!std::isfinite(a) || !std::isfinite(b)) continue;
    const double magnitude = z ? std::min(std::fabs(a + *z), std::fabs(b + *z)) : 1;
    if (std::fabs(a - b) > kRounding && magnitude >= kLeastLogit) steps.push_back({std::fabs(a - b), magnitude});
  }
}

std::vector<Step> steps_of(const ResultSet& golden, const RerunResult* rerun) {
  std::vector<Step> steps;
  for (const RequestRecord& record : golden.requests) {
    if (steps.size() >= kMostSteps) break;
    if (!record.top_n) continue;
    const RerunRequest* again = rerun == nullptr ? nullptr : rerun->find(record.id);
    const TopEntry* entries = record.top_n->entries.data();
    for (size_t i = 0; i < record.top_n->counts.size() && steps.size() < kMostSteps;
         entries += record.top_n->counts[i++]) {
      std::optional<double> z;
      if (again != nullptr && i < again->positions.size()) z = z_of(again->positions[i]);
      if (rerun == nullptr || z) add_steps(entries, record.top_n->counts[i], z, steps);
    }
  }
  return steps;
}

// Share of the steps that are multiples of the ULP of `mantissa` bits.
double share_on_grid(const std::vector<Step>& steps, int mantissa) {
  size_t on = 0;
  for (const Step& step : steps) {
    const double unit = ulp(mantissa, step.magnitude);
    const double off = std::fabs(step.difference - unit * std::round(step.difference / unit));
    on += off <= kRounding ? 1U : 0U;
  }
  return static_cast<double>(on) / static_cast<double>(steps.size());
}

// Of fp32 logits a step lies on the bf16 grid by chance with p = 2 * kRounding / ULP < 1 %. Where the rerun's Z puts a
// logit into the wrong binade, a true step may miss.
std::optional<int> from_steps(const std::vector<Step>& steps) {
  constexpr double kMost = 0.8;
  if (steps.size() < kLeastSamples) return std::nullopt;
  for (const int mantissa : {kBf16Mantissa, kFp16Mantissa}) {
    if (share_on_grid(steps, mantissa) >= kMost) return mantissa;
  }
  return kFp32Mantissa;
}

std::vector<Sample> samples_of(const ResultSet& golden, const RerunResult& rerun) {
  std::vector<Sample> samples;
  for (const RequestRecord& record : golden.requests) {
    const RerunRequest* again = rerun.find(record.id);
    if (again == nullptr || !record.tokens || !record.logprobs || record.logprobs->size() < record.tokens->size()) {
      continue;
    }
    const size_t generated = record.tokens->size();
    const double* logprobs = record.logprobs->data() + (record.logprobs->size() - generated);
    for (size_t i = 0; i < std::min(generated, again->positions.size()); ++i) {
      const std::optional<double> z = z_of(again->positions[i]);
      if (!z || !std::isfinite(logprobs[i])) continue;
      samples.push_back({logprobs[i] + *z, std::fabs(logprobs[i] - *again->positions[i].golden_logprob)});
    }
  }
  std::erase_if(samples, [](const Sample& sample) { return std::fabs(sample.logit) < kLeastLogit; });
  return samples;
}

// V-test of Mardia & Jupp, Directional Statistics, 5.3.2: u = sqrt(2 / n) * sum of cos, normal for uniform phases.
bool on_grid(const std::vector<Sample>& samples, int mantissa) {
  constexpr double kCritical = 4.75;  // p < 1e-6
  double sum = 0;
  for (const Sample& sample : samples) {
    sum += std::cos(2 * std::numbers::pi * sample.logit / ulp(mantissa, sample.logit));
  }
  return sum * std::sqrt(2 / static_cast<double>(samples.size())) > kCritical;
}

std::optional<int> from_samples(std::vector<Sample> samples) {
  if (samples.size() < kLeastSamples) return std::nullopt;
  for (const int mantissa : {kBf16Mantissa, kFp16Mantissa}) {
    if (on_grid(samples, mantissa)) return mantissa;
  }
  const auto middle = samples.begin() + static_cast<ptrdiff_t>(samples.size() / 2);
  std::nth_element(samples.begin(), middle, samples.end(),
                   [](const Sample& a, const Sample& b) { return a.delta < b.delta; });
  const bool close = middle->delta <= 2 * ulp(kBf16Mantissa, middle->logit);
  return close ? std::optional(kFp32Mantissa) : std::nullopt;
}

}  // namespace

bool off_grid(const ResultSet& golden, int mantissa) {
  constexpr double kSmallLogit = 1.0 / 16;
  constexpr double kFew = 0.5;  // of fp32 logits 2 % lie on the bf16 grid by chance, 13 % on that of fp16
  std::vector<Step> steps = steps_of(golden, nullptr);
  for (Step& step : steps) step.magnitude = kSmallLogit;
  return mantissa < kFp32Mantissa && steps.size() >= kLeastSamples && share_on_grid(steps, mantissa) < kFew;
}

std::optional<int> infer_mantissa(const ResultSet& golden, const RerunResult* rerun) {
  if (const std::optional<int> told = from_steps(steps_of(golden, rerun))) return told;
  if (rerun == nullptr) return std::nullopt;
  return from_samples(samples_of(golden, *rerun));
}

}  // namespace assay::compare
