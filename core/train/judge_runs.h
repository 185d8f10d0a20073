// The verdict on the runs of a training case that have ended well.
#pragma once

#include "core/train/run_case.h"

namespace assay::train {

// Reads the event files of run 1 (and of run 2 of a resuming case), writes actual.json (and actual_2nd.json), judges.
void judge_runs(const CasePlan& plan, const Result<std::string>& golden, CaseResult* result);

}  // namespace assay::train
