#include "core/train/thresholds.h"

#include <algorithm>
#include <array>

namespace assay::train {
namespace {

struct Entry {
  std::string_view metric;
  Threshold threshold;
};

constexpr std::array<Entry, 10> kThresholds = {{{"iteration-time", {false, 0.05}},
                                                {"mem-allocated-bytes", {false, 0.05}},
                                                {"mem-max-allocated-bytes", {false, 0.05}},
                                                {"lm loss", {true, 0.05}},
                                                {"mtp_1 loss", {true, 0.05}},
                                                {"mtp_2 loss", {true, 0.05}},
                                                {"num-zeros", {true, 0.20}},
                                                {"generated_tokens", {true, 0.05}},
                                                {"logprobs", {true, 0.05}},
                                                {"total loss", {true, 0.05}}}};

constexpr int64_t kShortRun = 25;  // steps
constexpr size_t kFallbackSteps = 4;

}  // namespace

std::optional<Threshold> threshold_of(std::string_view metric) {
  const auto* found = std::find_if(kThresholds.begin(), kThresholds.end(),
                                   [metric](const Entry& entry) { return entry.metric == metric; });
  if (found == kThresholds.end()) return std::nullopt;
  return found->threshold;
}

std::string_view table_name(std::string_view metric) {
  const auto* found = std::find_if(kThresholds.begin(), kThresholds.end(),
                                   [metric](const Entry& entry) { return spelled_alike(entry.metric, metric); });
  return found == kThresholds.end() ? std::string_view() : found->metric;
}

std::vector<std::string> default_metrics() { return {"lm loss", "num-zeros"}; }

std::vector<int64_t> iteration_time_steps(const Metric& golden) {
  std::vector<int64_t> finite;
  for (const StepValue& value : golden.values) {
    if (value.finite()) finite.push_back(value.step);
  }
  std::sort(finite.begin(), finite.end());
  if (finite.empty()) return {};
  const bool is_short = finite.back() <= kShortRun;
  const int64_t begin = is_short ? 5 : 30;
  const int64_t last = is_short ? 20 : 45;
  std::vector<int64_t> steps;
  std::copy_if(finite.begin(), finite.end(), std::back_inserter(steps),
               [&](int64_t step) { return step >= begin && step <= last; });
  if (!steps.empty()) return steps;
  std::copy_if(finite.begin(), finite.end(), std::back_inserter(steps), [&](int64_t step) { return step >= begin; });
  if (steps.size() > kFallbackSteps) steps.resize(kFallbackSteps);
  return steps;
}

double median(std::vector<double> values) {
  for (const double value : values) {
    if (std::isnan(value)) return value;
  }
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

int64_t allowed_failing_steps(int64_t steps) { return std::min<int64_t>(std::max<int64_t>(steps / 100, 1), 50); }

}  // namespace assay::train
