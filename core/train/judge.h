// Our verdict on what a training run logged, beside a golden file or another run. Pure functions.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "assay/verdict.h"
#include "core/train/metrics.h"

namespace assay::train {

struct JudgeRules {
  bool rl = false;                                       // limits of reinforcement learning
  std::optional<std::vector<std::string>> metrics = {};  // METRICS; absent: lm loss and num-zeros
  bool nondeterministic = false;                         // losses may differ within the relative limit
  std::map<std::string, double> tolerances = {};         // ASSAY.tolerance: relative, over our defaults
  int64_t throughput_start = 1;                          // rl: values of iteration-time that are left out
  std::string reference = "the golden";                  // what messages call the side that judges
};

// Metric by metric, the worst is the verdict; nothing missing passes (docs/training.md):
//  IDENTICAL  every compared value equal
//  EQUIVALENT within the tolerance; times and memory also below it
//  DRIFT      beyond it
//  DIVERGED   losses and counts: more steps than Megatron-LM allows are beyond its wide limit
//  INVALID    a step of the golden is missing, a value is no finite number, the run lacks the metric, the golden holds
//             no number
//  NOT_COMPARABLE  no metric is named, the golden lacks it, or there is no such metric
// `golden` of the verdict is left to the caller.
CaseVerdict judge(const MetricSet& golden, const MetricSet& actual, const JudgeRules& rules);

// Steps after train_iters / 2 of both runs of a resumed training. A second run that logged an earlier step did not
// resume: INVALID.
CaseVerdict judge_resume(const MetricSet& first, const MetricSet& second, int64_t train_iters, const JudgeRules& rules);

// What two repeats of one training differ in, bit by bit, times and memory apart; empty: nothing.
std::string first_difference(const MetricSet& a, const MetricSet& b);

}  // namespace assay::train
