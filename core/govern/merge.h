// What an acceptance would make of a golden, without writing it.
#pragma once

#include <string>
#include <vector>

#include "assay/case.h"
#include "assay/golden.h"
#include "assay/status.h"

namespace assay::govern {

// `golden` with the fields of `metrics` (kAllMetrics: of everything) from `recorded`; the rest of `golden` stays, the
// object "assay" too. Requests are compared by id. A golden without requests takes those of `recorded`, with their
// prompts. Newlines are written as the golden writes them. Fails as accept() says: unknown metrics, other requests or
// prompts, fields of one token sequence that would come from two runs.
Result<ResultSet> merge(const ResultSet& golden, const ResultSet& recorded, const std::vector<std::string>& metrics);

// kInvalid when the texts of `set` are not what ASSAY.known_completion says: the source's text up to its first blank
// line, not shorter than `before` (the golden so far) has it. Ok for characteristic goldens.
Status check_known_completion(const TestCase& test, const ResultSet& before, const ResultSet& set);

}  // namespace assay::govern
