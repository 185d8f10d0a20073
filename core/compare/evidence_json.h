// Evidence as JSON, both ways. Pure functions, safe from any thread.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "assay/evidence.h"

namespace assay::compare {

// An array of objects whose members are those of assay/evidence.h by name; empty strings, empty lists and absent
// optionals are left out. NaN and infinities are the strings "NaN", "Infinity" and "-Infinity".
nlohmann::ordered_json evidence_to_json(const std::vector<RequestEvidence>& evidence);

// The way back. Missing members keep their defaults, unknown ones are ignored. Throws nlohmann::json::exception on a
// member of another type: for use inside parse_verdict_json.
std::vector<RequestEvidence> evidence_from_json(const nlohmann::ordered_json& json);

}  // namespace assay::compare
