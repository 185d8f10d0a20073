// A verdict as a JSON value, for those who put it into, or take it out of, a larger one.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "assay/status.h"
#include "assay/verdict.h"

namespace assay::compare {

// What verdict_json() (render.h) writes.
nlohmann::ordered_json verdict_value(const CaseVerdict& verdict);

// The way back; unknown members are ignored. Fails with kInvalid.
Result<CaseVerdict> parse_verdict_value(const nlohmann::ordered_json& object);

}  // namespace assay::compare
