// The command that runs one case again.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/run/run.h"

namespace assay::run {

// A word as a POSIX shell reads it back; quoted only where needed.
std::string shell_word(std::string_view word);

// `assay run DIR` with the options of this run, and of the case itself, that matter for the result; with a relation,
// that one alone.
std::string reproduce_command(const RunOptions& options, const std::string& dir, const std::string& relation = {},
                              const CaseSettings& own = {});

}  // namespace assay::run
