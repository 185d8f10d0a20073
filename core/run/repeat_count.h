// How often a case is run: one rule for those who run it and those who divide the work beforehand.
#pragma once

#include <string>

#include "assay/case.h"
#include "assay/status.h"
#include "core/run/run.h"

namespace assay::run {

// N_REPEAT of ENV_VARS as it is written; null: it is not there.
const std::string* written_repeats(const TestCase& test);

// --repeat, else `n_repeat` (of ENV_VARS; null: it is not there), else N_REPEAT of --set, as in the ancestor's harness,
// else what the case's settings say, else once. Fails with kInvalid where N_REPEAT is no whole number from 1 to
// kMostRepeats.
Result<int> repeats_wanted(const RunOptions& options, const CaseSettings& own, const std::string* n_repeat);

}  // namespace assay::run
