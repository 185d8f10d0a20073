// A mapping as yq v4 leaves it after explode(.): the order and the values that Megatron-LM's harness sees.
#pragma once

#include <vector>

#include "core/discover/yaml_tree.h"

namespace assay::discover {

// Without `<<` in it a mapping keeps repeated keys, each with its own value. With `<<` each key is there once, and a
// merged value replaces one that stands before the `<<`. Mappings that `<<` holds itself, not through an alias, are
// dropped.
std::vector<YamlEntry> exploded(const YamlNode& map);

}  // namespace assay::discover
