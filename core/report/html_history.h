// The runs before this one as HTML. Pure functions, safe from any thread.
#pragma once

#include <string>

#include "core/report/report_run.h"

namespace assay::report {

// A table of runs with their counts and the median time per token; "" without a history.
std::string history_html(const ReportRun& run);

}  // namespace assay::report
