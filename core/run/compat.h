// The verdict of Megatron-LM's comparator for a case that ended: which files it would open, and what keeps its harness
// from comparing them.
#pragma once

#include <optional>
#include <string>

#include "assay/case.h"
#include "core/run/run.h"

namespace assay::run {

// What has to be known of a case.
struct CompatCase {
  std::string mode = {};
  std::string test_type = {};
  CompatMetrics metrics = {};
  bool lightweight = false;  // ENABLE_LIGHTWEIGHT_MODE is "true" in the environment or in ENV_VARS
  bool skips = false;        // ENV_VARS.SKIP_PYTEST is 1
};

CompatCase compat_case(const TestCase& test, const std::map<std::string, std::string>& environment);

// The comparator alone, on two files; a missing one is kFailed, as it is for them.
CompatVerdict judge_compat_files(const std::string& golden, const std::string& actual, const CompatMetrics& metrics,
                                 bool lightweight);

// nullopt where their harness has no such comparison: relations, MODE other than inference, SKIPPED cases. Reads
// outcome.actual and the golden file of `environment` and of the outcome's platform; a missing one is kFailed, as it is
// for them.
std::optional<CompatVerdict> judge_compat(const CompatCase& of, const std::string& environment,
                                          const CaseOutcome& outcome);

}  // namespace assay::run
