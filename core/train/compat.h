// The verdicts of Megatron-LM's comparators of training runs (tests/functional_tests/python_test_utils), holes
// included: test_pretraining_regular_pipeline.py, test_pretraining_resume_checkpoint_pipeline.py and
// test_grpo_training_loop.py. They share nothing with our own judging but the table of limits. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "assay/compat.h"
#include "core/train/metrics.h"

namespace assay::train {

// METRICS of model_config.yaml.
struct CompatMetrics {
  enum class Form : uint8_t {
    kMissing,  // no such key: lm loss and num-zeros
    kNull,
    kList,
  };
  Form form = Form::kMissing;
  std::vector<std::string> names;  // kList
};

// Values of a run against those of the golden file. `nondeterministic`: exact tests are left out.
CompatVerdict compat_pretraining(const MetricSet& golden, const MetricSet& actual, const CompatMetrics& metrics,
                                 bool nondeterministic);

// The second run of a resumed training against the first one, from step train_iters / 2 + 1 on.
CompatVerdict compat_resume(const MetricSet& first, const MetricSet& second, int64_t train_iters,
                            const CompatMetrics& metrics, bool nondeterministic);

// `start_step`: ENV_VARS.THROUGHPUT_START_STEP as written; nothing where it is absent.
CompatVerdict compat_rl(const MetricSet& golden, const MetricSet& actual, const CompatMetrics& metrics,
                        const std::optional<std::string>& start_step);

// What their comparator makes of a file that it cannot read.
CompatVerdict compat_unreadable(const std::string& message);

}  // namespace assay::train
