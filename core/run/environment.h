// What is different between where the golden was made and where the result was: the first question about a failure.
#pragma once

#include <optional>
#include <string>

#include "assay/provenance.h"
#include "assay/verdict.h"

namespace assay::run {

// Sets `verdict->environment` to the differences and, where there are any, ends its reason with their names:
// "; environment changed: device, dtype". Pure.
void explain_environment(const Provenance& golden, const Provenance& result, CaseVerdict* verdict);

// Provenance in the golden file that judged; nullopt: it has none, or cannot be read (again).
std::optional<Provenance> provenance_of_golden(const std::string& path);

}  // namespace assay::run
