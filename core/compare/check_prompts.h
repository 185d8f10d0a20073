// Were both sides asked the same question? Part of check_sets.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "assay/golden.h"

namespace assay::compare {

using AddFault = std::function<void(std::string request, int64_t index, std::string message)>;

// Tells `add` about prompts whose text or ids differ, side by side around the first difference, and about prompts whose
// numbers of tokens differ as the lengths of logprobs prove. At most one fault a request and kind.
void check_prompts(const ResultSet& golden, const ResultSet& actual, const AddFault& add);

}  // namespace assay::compare
