// What the verdict of a case depends on, as far as it lies in the case's folder.
#pragma once

#include <string>
#include <vector>

#include "assay/case.h"
#include "core/run/run.h"

namespace assay::run {

// SHA-256 over model_config.yaml and every golden file of the case, whole; what cannot be read counts as absent. Of a
// case that a recipe runs, what the recipe says of it (`own`) and its text with the recipe's words in it count, too.
// Reads files; safe from any thread.
std::string case_digest(const TestCase& test, const CaseSettings& own = {});

// SHA-256 over the names, configs and golden files of the cases, in their order: equal checkouts have equal digests,
// wherever they lie. Of a file above 64 KiB its size, its first and its last 32 KiB count, so that a thousand shards
// can afford it. `own`: empty, or one for each case.
std::string case_list_digest(const std::vector<const TestCase*>& cases, const std::vector<CaseSettings>& own = {});

}  // namespace assay::run
