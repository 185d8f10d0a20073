// One metric of a training run.
#pragma once

#include "core/train/judge.h"

namespace assay::train {

// `golden` and `actual`: null where the side lacks the metric.
MetricVerdict judge_metric(const std::string& name, const Metric* golden, const Metric* actual,
                           const JudgeRules& rules);

// Metrics that measure the machine, not what is learnt.
bool measures_machine(std::string_view metric);

}  // namespace assay::train
