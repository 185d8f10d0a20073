// ASSAY.waivers.
#pragma once

#include <vector>

#include "assay/waiver.h"
#include "core/discover/schema.h"

namespace assay::discover {

// Reads a list of waivers, or a single one. A member that is missing, unknown or of the wrong kind is a schema error
// with its place; `expires` may lie in the past: an expired waiver is no error, it waives nothing.
std::vector<Waiver> read_waivers(const YamlNode& node, SchemaErrors& errors);

}  // namespace assay::discover
