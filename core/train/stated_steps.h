// Whether the values of a metric are at the steps that its file states.
#pragma once

#include "core/train/metrics.h"

namespace assay::train {

// Sets `gap` unless the values are exactly at start_step to end_step by step_interval; where Megatron-LM's writer
// samples, at step 1 and the multiples of the interval. Its older writer stated 1 and sampled every fifth step, without
// those at which nothing was logged: one of these may be missing, and `note` says so.
void check_steps(Metric* metric);

}  // namespace assay::train
