// The checks of engines, by the files that they stand in.
#pragma once

#include "core/conformance/findings.h"

namespace assay::conformance {

// option_checks.cc
void check_engine_options(const Subject& subject, Findings& findings);
void check_launcher_options(const Subject& subject, Findings& findings);
// capability_checks.cc: what is claimed is given
void check_capabilities(const Subject& subject, Findings& findings);
void check_info(const Subject& subject, Findings& findings);
void check_training(const Subject& subject, Findings& findings);
// level_checks.cc: the determinism that is claimed
void check_l1(const Subject& subject, Findings& findings);
void check_l2(const Subject& subject, Findings& findings);
void check_l3(const Subject& subject, Findings& findings);
void check_seed(const Subject& subject, Findings& findings);
// bad_requests.cc
void check_bad_requests(const Subject& subject, Findings& findings);
void check_long_request(const Subject& subject, Findings& findings);
// size_checks.cc: older and newer callers
void check_query(const Subject& subject, Findings& findings);
void check_engine_sizes(const Subject& subject, Findings& findings);

}  // namespace assay::conformance
