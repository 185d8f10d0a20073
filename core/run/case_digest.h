// What the verdict of a case depends on, as far as it lies in files of the case.
#pragma once

#include <string>
#include <vector>

#include "assay/case.h"
#include "core/discover/substitute.h"
#include "core/run/run.h"

namespace assay::run {

// What ${NAME} stands for in a case of a run.
discover::Variables variables_of(const RunOptions& options, const CaseSettings& own = {});

// SHA-256 over model_config.yaml, every golden file, the prompt file and the sources of the known completion, each
// whole; what cannot be read counts as absent. Of a case that a recipe runs, what the recipe says of it (`own`) counts,
// too. `variables`: those of the run. Reads files; safe from any thread.
std::string case_digest(const TestCase& test, const discover::Variables& variables, const CaseSettings& own = {});

// SHA-256 over the names of the cases, in their order, and what counts for case_digest(): equal checkouts have equal
// digests, wherever they lie. `own`: empty, or one for each case. Each file is read once.
std::string case_list_digest(const std::vector<const TestCase*>& cases, const discover::Variables& variables,
                             const std::vector<CaseSettings>& own = {});

}  // namespace assay::run
