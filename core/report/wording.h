// What the two sides of a comparison are called: where a relation judged there is no golden, its reference way stands
// in for it. Pure.
#pragma once

#include <string>
#include <string_view>

#include "core/report/report_case.h"

namespace assay::report {

// "golden", or "reference" where a relation judged.
std::string_view golden_word(const ReportCase& report);

// `text` with the word that fits: of one that a relation judged, every "golden" becomes "reference", but for what
// stands in double quotes (tokens and texts of models) and for parts of paths and names.
std::string worded(const ReportCase& report, std::string_view text);

// The same for reason, findings and notes of a verdict: comparators know of goldens alone. To be called once a case is
// put together.
void word_verdict(ReportCase* report);

}  // namespace assay::report
