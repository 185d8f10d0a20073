// A golden of a training case against values that are there already, without an engine.
#pragma once

#include <string>

#include "assay/case.h"
#include "assay/compat.h"
#include "assay/verdict.h"

namespace assay::train {

struct ComparedFiles {
  CaseVerdict verdict;
  CompatVerdict compat;
};

// Whether values of a training are meant: MODE is not inference, and METRICS or the golden file is of that kind. A
// config without MODE alone does not tell.
bool compares_training(const TestCase& test, const std::string& golden);

// `actual`: a file in the form of goldens, or a folder of TensorBoard event files. Of `test` counts what plan_case
// takes from it: MODE, TEST_TYPE, METRICS, the limits. Whatever is missing is part of the verdict.
ComparedFiles compare_files(const TestCase& test, const std::string& golden, const std::string& actual);

}  // namespace assay::train
