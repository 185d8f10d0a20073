// The step summary of GitHub Actions: markdown with a hard limit of 1 MiB, beyond which the whole summary is dropped.
#pragma once

#include <string>

#include "assay/status.h"
#include "core/report/report_run.h"

namespace assay::report {

inline constexpr size_t kMaxSummaryBytes = 1'000'000;  // below 1 MiB, so that nothing is lost at the border

// Counts, then failures in the order of severity with reason, likely cause and reproduce command, as many as fit into
// `limit` bytes as a whole; the rest are counted ("12 more"). Never longer than `limit` (at least 1,000).
std::string github_summary(const ReportRun& run, size_t limit = kMaxSummaryBytes);

// Appends to `path`, as a step may have written there before: what is in it counts towards the limit. kInfra names
// the path.
Status append_github_summary(const std::string& path, const ReportRun& run);

}  // namespace assay::report
