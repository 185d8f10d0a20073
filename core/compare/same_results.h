// Are two results of one case the same, bit for bit? Pure.
#pragma once

#include <string>

#include "assay/golden.h"

namespace assay::compare {

// The first value of a request that differs between two results of one case, bit by bit: "request 3: logprobs[17]:
// -0.25 and -0.5"; "" when there is none. Looks at what the model says (prompt ids, tokens, text, logprobs, top-n,
// routing), not at times, nor at what files do not hold (logits, ranks).
std::string first_difference(const ResultSet& first, const ResultSet& other);

}  // namespace assay::compare
