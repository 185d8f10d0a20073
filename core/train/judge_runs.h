// The verdict on the runs of a training case that have ended well.
#pragma once

#include <string>

#include "core/train/run_case.h"

namespace assay::train {

// Reads the event files of run 1 (and of run 2 of a resuming case), writes actual.json (and actual_2nd.json), judges.
void judge_runs(const CasePlan& plan, const Result<std::string>& golden, CaseResult* result);

// Where the values of a second run go beside `path`: _2nd before its ending.
std::string second_name(const std::string& path);

}  // namespace assay::train
