// JUnit XML as GitLab and Jenkins read it.
#pragma once

#include <string>
#include <vector>

#include "assay/status.h"
#include "core/report/report_case.h"

namespace assay::report {

// One <testsuite> with a <testcase> for each case. Names are made unique; characters that XML 1.0 forbids, and bytes
// that are not UTF-8, become U+FFFD. DRIFT, DIVERGED, NOT_COMPARABLE, FLAKY, XPASS are <failure>; INVALID, CRASHED and
// INFRA are <error>; SKIPPED is <skipped>. With `strict`, EQUIVALENT is a <failure>.
std::string junit_xml(const std::vector<ReportCase>& cases, bool strict);

// Writes junit_xml to `path` by way of a temporary file, so that a reader never sees half of it. kInfra names the path.
Status write_junit(const std::string& path, const std::vector<ReportCase>& cases, bool strict);

}  // namespace assay::report
