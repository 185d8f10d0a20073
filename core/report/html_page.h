// The report as one HTML page that needs nothing but itself: no script, no network, light and dark.
#pragma once

#include <string>

#include "assay/status.h"
#include "core/report/report_run.h"

namespace assay::report {

// The whole page. Reads the results and golden files of drawn cases for their plots, if they are there. What does not
// pass comes first: in full until the page holds kMaxPageBytes, then without evidence, then as rows; what passes is a
// row, EQUIVALENT and declared cases unfold. Never beyond 20 MB: at last cases are counted only, and one text shows
// 8,000 code points at most.
std::string html_page(const ReportRun& run);
inline constexpr size_t kMaxPageBytes = 16'000'000;

// Writes html_page through a temporary file. kInfra names the path.
Status write_html(const std::string& path, const ReportRun& run);

}  // namespace assay::report
