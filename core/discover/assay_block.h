// The block ASSAY of a case file.
#pragma once

#include "assay/case.h"
#include "core/discover/schema.h"
#include "core/discover/yaml_tree.h"

namespace assay::discover {

// Reads every key; an unknown one is an error with the nearest name.
void read_assay_block(const YamlNode& node, AssayBlock& block, SchemaErrors& errors);

}  // namespace assay::discover
