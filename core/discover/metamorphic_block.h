// ASSAY.metamorphic of a case file, and ASSAY.waivers[].relations, which names the same relations.
#pragma once

#include <string>
#include <vector>

#include "assay/case.h"
#include "core/discover/schema.h"
#include "core/discover/yaml_tree.h"

namespace assay::discover {

// `all`, one relation, a list of relations, or a mapping with relations (as before; absent: all), batches, chunks,
// threads (a number or a list of them), prompt_tokens and new_tokens. What is wrong is an error at its place: unknown
// names with the nearest one, numbers out of range, empty lists, anything named twice.
MetamorphicBlock read_metamorphic_block(const YamlNode& node, SchemaErrors& errors);

// One relation or a list of at least one. `what` names the member in messages.
std::vector<std::string> read_relations(const YamlNode& node, const std::string& what, SchemaErrors& errors);

// Names of the relations that the block asks for, in its order; every one where it says `all`.
std::vector<std::string> relations_of(const MetamorphicBlock& block);

}  // namespace assay::discover
