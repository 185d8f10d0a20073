#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "core/train/compat.h"
#include "core/train/thresholds.h"

namespace assay::train {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr const char* kEmpty = "ValidationError: a file without a metric is no GoldenValues";

CompatVerdict failed(std::string message) { return {CompatVerdict::kFailed, std::move(message)}; }

// A name and its limits, each name once.
struct Check {
  std::string metric;
  Threshold threshold;
};

struct Checks {
  std::vector<Check> list;
  std::optional<CompatVerdict> failure;
};

Checks checks_of(const CompatMetrics& metrics) {
  Checks checks;
  if (metrics.form == CompatMetrics::Form::kNull) {
    checks.failure = failed("TypeError: METRICS is null and cannot be iterated");
    return checks;
  }
  const bool missing = metrics.form == CompatMetrics::Form::kMissing;
  for (const std::string& name : missing ? default_metrics() : metrics.names) {
    const std::optional<Threshold> threshold = threshold_of(name);
    if (!threshold) {
      checks.failure = failed(fmt::format("KeyError: '{}' has no thresholds", name));
      return checks;
    }
    const bool known =
        std::any_of(checks.list.begin(), checks.list.end(), [&](const Check& check) { return check.metric == name; });
    if (!known) checks.list.push_back({name, *threshold});
  }
  return checks;
}

// Text and absent values become infinite.
double number_of(const StepValue* value) { return value == nullptr || value->is_text ? kInfinity : value->value; }

bool is_close(double actual, double golden, double relative) {
  if (actual == golden) return true;
  return std::isfinite(golden) && std::fabs(actual - golden) <= relative * std::fabs(golden);
}

struct Pairs {
  std::vector<double> golden;
  std::vector<double> actual;
  std::string failure;  // empty: there is something to compare
};

Pairs pairs_of(const Metric& golden, const Metric& actual) {
  Pairs pairs;
  if (golden.values.empty()) {
    pairs.failure = fmt::format("Metric {} has no values in the golden file.", golden.name);
    return pairs;
  }
  const StepIndex by_step(actual);
  if (golden.name == "iteration-time") {
    const bool any =
        std::any_of(golden.values.begin(), golden.values.end(), [](const StepValue& v) { return v.finite(); });
    const std::vector<int64_t> steps = iteration_time_steps(golden);
    if (steps.empty()) {
      pairs.failure = any ? "Metric iteration-time has no finite values after its warmup window."
                          : "Metric iteration-time has no finite values.";
      return pairs;
    }
    const StepIndex reference(golden);
    for (const int64_t step : steps) {
      pairs.golden.push_back(number_of(reference.find(step)));
      pairs.actual.push_back(number_of(by_step.find(step)));
    }
    pairs.golden = {median(pairs.golden)};
    pairs.actual = {median(pairs.actual)};
  } else {
    for (const StepValue& value : golden.values) {
      pairs.golden.push_back(number_of(&value));
      pairs.actual.push_back(number_of(by_step.find(value.step)));
    }
  }
  return pairs;
}

// Empty: passed.
std::string test_failure(const Pairs& pairs, const std::string& metric, bool exact, double relative) {
  if (!pairs.failure.empty()) return pairs.failure;
  const size_t total = pairs.golden.size();
  size_t close = 0;
  for (size_t i = 0; i < total; ++i) close += is_close(pairs.actual[i], pairs.golden[i], exact ? 0 : relative) ? 1 : 0;
  bool passing = close == total;
  if (!exact && total > 1) {
    const auto all = static_cast<double>(total);
    const auto allowed = static_cast<double>(allowed_failing_steps(static_cast<int64_t>(total)));
    passing = static_cast<double>(close) / all >= 1 - allowed / all;
  }
  if (passing) return "";
  return fmt::format("{} comparison of {}: FAILED ({} of {} steps are close)", exact ? "Exact" : "Approximate", metric,
                     close, total);
}

CompatVerdict compare(const MetricSet& golden, const MetricSet& actual, const std::vector<Check>& checks,
                      bool nondeterministic) {
  std::vector<std::string> failures;
  for (const Check& check : checks) {
    const Metric* measured = actual.find(check.metric);
    if (measured == nullptr) {
      return failed(fmt::format("MissingTensorboardLogsError: Metric {} not found in Tensorboard logs", check.metric));
    }
    const Metric* reference = golden.find(check.metric);
    if (reference == nullptr) return failed(fmt::format("KeyError: '{}'", check.metric));
    const Pairs pairs = pairs_of(*reference, *measured);
    for (const bool exact : {true, false}) {
      if (exact && (nondeterministic || !check.threshold.exact)) continue;
      std::string failure = test_failure(pairs, check.metric, exact, check.threshold.relative);
      if (!failure.empty()) failures.push_back(std::move(failure));
    }
  }
  if (failures.empty()) return {CompatVerdict::kPassed, "all metrics passed"};
  return failed(fmt::format("AssertionError: {}", fmt::join(failures, "; ")));
}

std::optional<CompatVerdict> missing_in(const MetricSet& set, const std::vector<Check>& checks, const char* where) {
  std::vector<std::string> missing;
  for (const Check& check : checks) {
    if (set.find(check.metric) == nullptr) missing.push_back(check.metric);
  }
  if (missing.empty()) return std::nullopt;
  return failed(fmt::format("AssertionError: metrics required but not {}: {}", where, fmt::join(missing, ", ")));
}

MetricSet second_half(const MetricSet& set, int64_t train_iters) {
  MetricSet half = set;
  for (Metric& metric : half.metrics) {
    std::erase_if(metric.values, [&](const StepValue& value) { return value.step <= train_iters / 2; });
  }
  return half;
}

}  // namespace

CompatVerdict compat_pretraining(const MetricSet& golden, const MetricSet& actual, const CompatMetrics& metrics,
                                 bool nondeterministic) {
  if (golden.metrics.empty() || actual.metrics.empty()) return failed(kEmpty);
  const Checks checks = checks_of(metrics);
  if (checks.failure) return *checks.failure;
  if (std::optional<CompatVerdict> missing = missing_in(golden, checks.list, "provided in golden values")) {
    return *missing;
  }
  return compare(golden, actual, checks.list, nondeterministic);
}

CompatVerdict compat_resume(const MetricSet& first, const MetricSet& second, int64_t train_iters,
                            const CompatMetrics& metrics, bool nondeterministic) {
  if (first.metrics.empty() || second.metrics.empty()) return failed(kEmpty);
  const Checks checks = checks_of(metrics);
  if (checks.failure) return *checks.failure;
  if (std::optional<CompatVerdict> missing = missing_in(first, checks.list, "logged during training")) return *missing;
  for (const Check& check : checks.list) {
    if (second.find(check.metric) == nullptr) return failed(fmt::format("KeyError: '{}'", check.metric));
  }
  return compare(second_half(first, train_iters), second_half(second, train_iters), checks.list, nondeterministic);
}

CompatVerdict compat_unreadable(const std::string& message) { return failed("unreadable: " + message); }

}  // namespace assay::train
