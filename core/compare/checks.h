// What must hold before any metric is judged, whatever its name.
#pragma once

#include <string_view>
#include <vector>

#include "assay/golden.h"
#include "assay/verdict.h"

namespace assay::compare {

// INVALID findings, one a fault, in order: nothing in a file, request ids that only one side has, prompts that differ
// (side by side, see check_prompts.h), NaN and infinities (one finding a list, naming the first index). Empty: the two
// can be judged.
std::vector<Finding> check_sets(const ResultSet& golden, const ResultSet& actual);

// One finding a list that holds NaN or an infinity, naming its first index; `side` ("golden", "result") begins
// messages.
std::vector<Finding> nonfinite_values(std::string_view side, const ResultSet& set);

// True when the texts of the set store newlines as the two characters backslash, n (coordinator form).
bool escapes_newlines(const ResultSet& set);

}  // namespace assay::compare
