// ASSAY.waivers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "assay/waiver.h"
#include "core/discover/schema.h"

namespace assay::discover {

// Reads a list of waivers, or a single one. A member that is missing, unknown or of the wrong kind is a schema error
// with its place; `expires` may lie in the past: an expired waiver is no error, it waives nothing.
std::vector<Waiver> read_waivers(const YamlNode& node, SchemaErrors& errors);

// Days after `today` ("2026-11-29", UTC) on which the waiver still counts; negative: it has expired.
int64_t waiver_days_left(const Waiver& waiver, const std::string& today);

// "until 2027-01-31, 62 days left" or "expired on 2026-01-31".
std::string waiver_validity(const Waiver& waiver, const std::string& today);

}  // namespace assay::discover
