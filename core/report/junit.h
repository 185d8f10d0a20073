// JUnit XML as GitLab and Jenkins read it.
#pragma once

#include <string>

#include "assay/status.h"
#include "core/report/report_run.h"

namespace assay::report {

// One <testsuite> with a <testcase> for each case. Names are made unique; characters that XML 1.0 forbids, and bytes
// that are not UTF-8, become U+FFFD. DRIFT, DIVERGED, NOT_COMPARABLE, FLAKY, XPASS are <failure>; INVALID, CRASHED and
// INFRA are <error>; SKIPPED is <skipped>. With `strict`, EQUIVALENT is a <failure>. FLAKY has a <rerunFailure> beside
// its <failure>, or a <flakyFailure> alone where a waiver lets it pass. Texts of one case are cut at kMaxJunitText.
std::string junit_xml(const ReportRun& run);
inline constexpr size_t kMaxJunitText = 64'000;  // bytes

// Writes junit_xml to `path` by way of a temporary file, so that a reader never sees half of it. kInfra names the path.
Status write_junit(const std::string& path, const ReportRun& run);

}  // namespace assay::report
