// The one line that a person should read first.
#pragma once

#include <string>

#include "assay/verdict.h"

namespace assay::compare {

// Failing: metric, request and message of the first finding that is as bad as the verdict, and how many others there
// are. Passing: how many values of which metrics were compared, with the largest difference. One printable line,
// whatever a metric or a request is called.
std::string reason_of(const CaseVerdict& verdict);

// One line about a metric that passed: requests, values, largest difference.
std::string summary_of(const MetricVerdict& metric);

}  // namespace assay::compare
