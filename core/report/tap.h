// TAP version 14, for harnesses that read it.
#pragma once

#include <string>

#include "assay/status.h"
#include "core/report/report_run.h"

namespace assay::report {

// One test point a case, in the order of the run. SKIPPED is "ok ... # SKIP reason"; XFAIL and WAIVED are "not ok ...
// # TODO"; what does not pass carries verdict, reason, golden and the reproduce command as YAML. A run that was killed
// ends in "Bail out!".
std::string tap_text(const ReportRun& run);

// Through a temporary file; kInfra names the path.
Status write_tap(const std::string& path, const ReportRun& run);

}  // namespace assay::report
