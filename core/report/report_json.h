// The report for programs. Its schema is docs/schemas/report.schema.json.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "assay/status.h"
#include "core/report/report_run.h"

namespace assay::report {

inline constexpr int kReportSchema = 1;  // grows when a member changes its meaning or goes; new members do not count

// One JSON document, indented by one, ASCII where names are; ill-formed UTF-8 becomes U+FFFD, numbers that are not
// finite become null.
std::string report_json(const ReportRun& run);

// Through a temporary file; kInfra names the path.
Status write_json(const std::string& path, const ReportRun& run);

// One case on one level, as `assay run --json` prints it; "declared" and "judged" only where there is something to say.
nlohmann::ordered_json flat_case_json(const ReportCase& report);

}  // namespace assay::report
