#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <stdexcept>

#include "core/train/compat.h"
#include "core/train/thresholds.h"

namespace assay::train {
namespace {

// What ends their script: the kind of the exception, and its text.
class Raised : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The numbers of values()[start:].
std::vector<double> numbers_from(const Metric& metric, int64_t start) {
  if (metric.unusable) throw Raised(fmt::format("AttributeError: {} has no values by step", metric.name));
  const auto size = static_cast<int64_t>(metric.values.size());
  std::vector<double> numbers;
  for (int64_t i = start < 0 ? std::max<int64_t>(size + start, 0) : start; i < size; ++i) {
    const StepValue& value = metric.values[static_cast<size_t>(i)];
    if (value.is_text) throw Raised(fmt::format("TypeError: {} holds text at step {}", metric.name, value.step));
    numbers.push_back(value.value);
  }
  return numbers;
}

double median_from(const Metric& metric, int64_t start) {
  const std::vector<double> list = numbers_from(metric, start);
  if (list.empty()) throw Raised("StatisticsError: no median for empty data (" + metric.name + ")");
  return median(list);
}

// Python's max(): the first value stays until a larger one comes.
double largest_but_first(const Metric& metric) {
  const std::vector<double> list = numbers_from(metric, 1);
  if (list.empty()) throw Raised("ValueError: max() of an empty list (" + metric.name + ")");
  double largest = list.front();
  for (const double value : list) {
    if (value > largest) largest = value;
  }
  return largest;
}

const Metric& golden_metric(const MetricSet& golden, std::string_view name) {
  const Metric* metric = golden.find(name);
  if (metric == nullptr) throw Raised(fmt::format("KeyError: '{}'", name));
  return *metric;
}

void check_iteration_time(const MetricSet& golden, const Metric& actual, int64_t start) {
  const double sampled = median_from(actual, start);
  const double reference = median_from(golden_metric(golden, "iteration-time"), start);
  const double lower = (1 - kRlIterationTime) * reference;
  const double upper = (1 + kRlIterationTime) * reference;
  if (lower <= sampled && sampled <= upper) return;
  throw Raised(fmt::format("AssertionError: iteration time {} not within 15% of {}", sampled, reference));
}

void check_loss(const MetricSet& golden, const Metric& actual) {
  size_t mismatches = 0;
  const Metric& reference = golden_metric(golden, "lm-loss");
  if (reference.unusable || actual.unusable) throw Raised("AttributeError: lm-loss has no values by step");
  const StepIndex by_step(actual);
  for (const StepValue& value : reference.values) {
    const StepValue* other = by_step.find(value.step);
    if (other == nullptr) {
      ++mismatches;
      continue;
    }
    if (value.is_text || other->is_text) throw Raised("TypeError: lm-loss holds text");
    if (value.value == 0 || std::fabs(value.value) < kRlLossNearZero) {
      mismatches += std::fabs(other->value) > kRlLossNearZero ? 1 : 0;
    } else {
      mismatches += std::fabs(other->value - value.value) / std::fabs(value.value) > kRlLoss ? 1 : 0;
    }
  }
  if (mismatches > 0) throw Raised(fmt::format("AssertionError: {} values of lm-loss outside of 1.0%", mismatches));
}

void check_memory(const MetricSet& golden, const Metric& actual) {
  const double sampled = largest_but_first(actual);
  const double reference = largest_but_first(golden_metric(golden, actual.name));
  const double upper = (1 + kRlMemory) * reference;
  if (sampled <= upper) return;
  throw Raised(fmt::format("AssertionError: {} {} exceeds 10% above {}", actual.name, sampled, reference));
}

int64_t start_of(const std::optional<std::string>& text) {
  if (!text) return 1;
  int64_t start = 0;
  const auto [stop, error] = std::from_chars(text->data(), text->data() + text->size(), start);
  if (error == std::errc() && stop == text->data() + text->size()) return start;
  throw Raised("TypeError: THROUGHPUT_START_STEP is no whole number");
}

void compare(const MetricSet& golden, const MetricSet& actual, const CompatMetrics& metrics,
             const std::optional<std::string>& start_step) {
  if (metrics.form == CompatMetrics::Form::kMissing) throw Raised("KeyError: 'METRICS'");
  for (const Metric& metric : golden.metrics) {
    if (actual.find(metric.name) == nullptr) {
      throw Raised(fmt::format("AssertionError: {} of the golden is missing in the run", metric.name));
    }
  }
  if (golden.metrics.empty()) throw Raised("AssertionError: the golden is empty");
  const auto wanted = [&](const char* name) -> const Metric* {
    if (metrics.form == CompatMetrics::Form::kNull) throw Raised("TypeError: METRICS is null");
    const bool named = std::find(metrics.names.begin(), metrics.names.end(), name) != metrics.names.end();
    return named ? actual.find(name) : nullptr;
  };
  if (const Metric* metric = wanted("iteration-time")) check_iteration_time(golden, *metric, start_of(start_step));
  if (const Metric* metric = wanted("lm-loss")) check_loss(golden, *metric);
  for (const char* name : {"mem-allocated-bytes", "mem-max-allocated-bytes"}) {
    if (const Metric* metric = wanted(name)) check_memory(golden, *metric);
  }
}

}  // namespace

CompatVerdict compat_rl(const MetricSet& golden, const MetricSet& actual, const CompatMetrics& metrics,
                        const std::optional<std::string>& start_step) {
  try {
    compare(golden, actual, metrics, start_step);
    return {CompatVerdict::kPassed, "all metrics passed"};
  } catch (const Raised& raised) {
    return {CompatVerdict::kFailed, raised.what()};
  }
}

}  // namespace assay::train
