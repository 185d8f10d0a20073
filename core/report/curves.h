// Values by position of a case, for plots: read again from the results file and the golden, if they are still there.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/report/report_case.h"

namespace assay::report {

struct RequestCurves {
  std::string request;
  std::vector<double> golden_tpot;  // (G) seconds; empty: not known
  std::vector<double> result_tpot;
  std::vector<double> golden_logprobs;  // (P - 1 + G) nats: prompt, then generated; empty: not known
  std::vector<double> result_logprobs;
};

// Of the first `limit` requests of the results file. Files that are absent, broken or larger than kMaxCurveFile are
// passed over: the verdict does not hang on them.
std::vector<RequestCurves> read_curves(const ReportCase& report, size_t limit);
inline constexpr uint64_t kMaxCurveFile = 64'000'000;  // bytes

}  // namespace assay::report
