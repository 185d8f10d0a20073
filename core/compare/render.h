// A judged case as text for people and as JSON for programs. Pure functions, safe from any thread.
#pragma once

#include <string>
#include <string_view>

#include "assay/status.h"
#include "assay/verdict.h"

namespace assay::compare {

// Lines, each ending in a newline: verdict and reason, the golden, then each metric with its findings, then where
// requests part in brief. Passing
// requests are summed up in their metric's line unless `every_request`; what fails and what is noted always shows.
std::string render_verdict_text(const CaseVerdict& verdict, bool every_request = false);

// One JSON object on one line, without newline: {"verdict", "reason", "golden", "metrics": [{"metric", "verdict",
// "findings": [{"verdict", "note", "request", "index", "compared", "differing", "max_abs_difference",
// "smallest_passing_tolerance", "message"}]}]} and, where there are any, "evidence" (evidence_json.h), "environment",
// "declared" and "judged". NaN and infinities are the strings "NaN", "Infinity", "-Infinity".
std::string verdict_json(const CaseVerdict& verdict);

// The way back from verdict_json; unknown members are ignored. Fails with kInvalid.
Result<CaseVerdict> parse_verdict_json(std::string_view json);

}  // namespace assay::compare
