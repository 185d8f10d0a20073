// A quick reader for the plain kind of YAML that nearly every case file is: several times as fast as the full parser.
#pragma once

#include <string_view>

#include "core/discover/yaml_tree.h"

namespace assay::discover {

// Reads prepared text (yaml_text.h) of block mappings, block lists of scalars, plain scalars of one line and quoted
// ones without escapes. False: the text holds anything else, or might be wrong; `tree` is then unspecified and the full
// parser decides. True: the tree is exactly the one that the full parser gives, places included.
bool read_simple_yaml(std::string_view text, YamlTree& tree);

}  // namespace assay::discover
