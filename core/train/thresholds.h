// The limits of Megatron-LM's comparators of training runs, and the steps that iteration times are taken from.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/train/metrics.h"

namespace assay::train {

struct Threshold {
  bool exact = false;   // compared bit by bit where the run is deterministic
  double relative = 0;  // |actual - golden| <= relative * |golden|
};

// Of pretraining; nothing for a metric that has none.
std::optional<Threshold> threshold_of(std::string_view metric);

// The name that the table has for a metric spelled like it; empty: there is none.
std::string_view table_name(std::string_view metric);

// METRICS of a case that has no such key.
std::vector<std::string> default_metrics();

// The steps whose median is the iteration time: 5 to 20 where the golden's last number stands at step 25 or before,
// else 30 to 45; where it has none of them, its first four from 5 (or 30) on. Ascending; empty: the golden has none.
std::vector<int64_t> iteration_time_steps(const Metric& golden);

// Of n > 0 values, sorted or not: the middle one, or the mean of the middle two; NaN where one is NaN.
double median(std::vector<double> values);

// Most steps out of `steps` that may be beyond the relative limit.
int64_t allowed_failing_steps(int64_t steps);

// Of reinforcement learning.
inline constexpr double kRlLoss = 0.01;
inline constexpr double kRlLossNearZero = 1e-6;
inline constexpr double kRlIterationTime = 0.15;
inline constexpr double kRlMemory = 0.10;

}  // namespace assay::train
