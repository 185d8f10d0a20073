// Accepting: values of a pending golden go into the golden, metric by metric, with a reason and where they come from.
// The only way by which golden files change.
#pragma once

#include <string>
#include <vector>

#include "assay/case.h"
#include "assay/status.h"
#include "core/compare/judge.h"
#include "core/golden/pending.h"

namespace assay::govern {

inline constexpr const char* kNoiseMetric = "noise";  // the noise model that calibration measured
inline constexpr const char* kAllMetrics = "*";       // everything the pending golden holds

struct AcceptRequest {
  std::vector<std::string> metrics;  // names as in METRICS, kNoiseMetric; {kAllMetrics}: the whole
  std::string who;
  std::string why;
  std::string when;  // UTC
};

struct Accepted {
  std::string golden;                  // path of the file that was written
  bool created = false;                // there was none
  std::vector<std::string> metrics;    // accepted now
  std::vector<std::string> remaining;  // still pending; empty: the pending file was removed
};

// Merges the fields of `metrics` into the golden, keeping all else of it, and appends an Acceptance each. Where the
// golden of any platform judges so far, a new one for this platform begins as its copy. Written at once or not at all;
// the folder is locked meanwhile and the golden must say what it said when this was recorded.
// Fails with kInvalid, one line and nothing written:
//  - reason or name without a visible character, a reason of more than 2,000, a metric that the pending golden lacks
//  - the golden changed since the recording, or while this call ran
//  - request ids or prompts differ from the golden's and not everything is accepted
//  - values that belong to the same tokens would come from two runs (names both metrics and the first request)
//  - text or tokens of a known completion that are not its source's text (names source and first difference), or a
//    request of it that is no longer there
//  - what the golden would hold could never pass (check_can_judge)
// and with kInfra when files cannot be written.
Result<Accepted> accept(const TestCase& test, const PendingGolden& pending, const AcceptRequest& request,
                        const compare::ComparatorLookup& lookup);

// Removes the pending file. Fails with kNotFound or kInfra.
Status reject(const std::string& pending_path);

}  // namespace assay::govern
