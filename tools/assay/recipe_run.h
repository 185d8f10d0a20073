// From workloads of recipes to the cases of one run.
#pragma once

#include <string>
#include <vector>

#include "assay/case.h"
#include "core/discover/substitute.h"
#include "core/recipe/catalogue.h"
#include "core/run/run.h"

namespace assay::cli {

struct RecipeCases {
  std::vector<TestCase> cases;              // one a workload, in order; builds are none
  std::vector<run::CaseSettings> settings;  // of the same length
};

// Names are MODEL/NAME of the workload, with its scope behind where two would be the same. A workload that cannot be
// run is a case all the same: with an error (its recipe is wrong, its case does not exist), or with a settled verdict
// and a reason (SKIPPED: its script runs no case; NOT_COMPARABLE: no engine of its flavour, `engine` being empty).
// The settings of a case have the variables that it asks for, `given` lacks and its script gives, and
// TRAINING_SCRIPT_PATH.
RecipeCases cases_of(const recipe::Catalogue& catalogue, const std::string& engine, const discover::Variables& given);

}  // namespace assay::cli
