// From a training case (MODE pretraining or rl) to what a worker is told to do.
#pragma once

#include <string>

#include "assay/case.h"
#include "core/run/case_order.h"
#include "core/run/run.h"

namespace assay::run {

// Time for an engine to end a program that reached its limit, before the worker itself is ended.
inline constexpr std::chrono::milliseconds kTrainingGrace{30'000};

// `id` names the case's folder below cases/; `time_limit`: of one repeat. Fails with the line that becomes the verdict.
Result<PreparedCase> prepare_training(const TestCase& test, const std::string& id, const RunOptions& options,
                                      const CaseSettings& settings, std::chrono::milliseconds time_limit);

}  // namespace assay::run
