// What the waivers of a case, and TEST_EVALUATION, make of its verdict. The one place where a verdict is changed by
// declaration. Pure.
#pragma once

#include <string>
#include <vector>

#include "assay/case.h"
#include "assay/verdict.h"
#include "assay/waiver.h"

namespace assay::run {

// What a case declares about its own verdict.
struct Declarations {
  std::vector<Waiver> waivers = {};
  bool may_fail_to_run = false;  // TEST_EVALUATION: xpass
};

struct WaiverContext {
  std::string today = {};        // UTC, "2026-11-29"
  std::string platform = {};     // of the results; empty: not known
  std::string environment = {};  // empty: not known
  std::string relation = {};     // that judged; empty: a golden did
  bool engine_failed = false;    // the engine died, hung, or refused or failed a request: there was nothing to judge
};

Declarations declarations_of(const TestCase& test);

// Changes `verdict`:
//   failing, and a waiver of this platform and environment covers it    WAIVED, or XFAIL where failure is expected
//   failing, and the waiver that covers it has expired                  stays
//   engine_failed (CRASHED, INVALID), and TEST_EVALUATION is xpass      XFAIL
//   passing, and a waiver of this platform expects failure              XPASS, which does not pass
//   passing, and there is any other waiver                              stays
// `declared` says in every one of these cases what the waiver has to do with it; `judged` is set where the verdict
// changed. SKIPPED stays untouched.
void apply_declarations(const Declarations& declarations, const WaiverContext& context, CaseVerdict* verdict);

}  // namespace assay::run
