// The verdict of Megatron-LM's comparator for a case that ended: which files it would open, and what keeps its harness
// from comparing them.
#pragma once

#include <optional>
#include <string>

#include "assay/case.h"
#include "core/discover/substitute.h"
#include "core/run/run.h"

namespace assay::run {

// What has to be known of a case.
struct CompatCase {
  std::string mode = {};
  std::string test_type = {};
  CompatMetrics metrics = {};
  std::string uncompared = {};  // train::why_uncompared
  bool xpass = false;           // TEST_EVALUATION: the program may fail
  std::string golden = {};      // the file that judges; empty: that of the case's folder
};

CompatCase compat_case(const TestCase& test, const discover::Variables& variables, const std::string& golden);

// The comparator alone, on two files; a missing one is kFailed, as it is for them.
CompatVerdict judge_compat_files(const std::string& golden, const std::string& actual, const CompatMetrics& metrics,
                                 bool lightweight);

// nullopt where their harness has no such comparison: relations, MODE other than inference, cases that did not run.
// Where nothing is to be compared, the end of the run counts alone: kSkipped, else kFailed. Reads outcome.actual and
// the golden file: of.golden, else that of `environment` and of the outcome's platform; a missing one is kFailed, as it
// is for them.
std::optional<CompatVerdict> judge_compat(const CompatCase& of, const std::string& environment,
                                          const CaseOutcome& outcome);

}  // namespace assay::run
