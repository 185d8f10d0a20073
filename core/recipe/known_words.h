// Scopes, platforms and cadences that Megatron-LM's CI knows.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/recipe/finding.h"

namespace assay::recipe {

// An older name of a scope.
struct ScopeAlias {
  std::string_view name;
  std::string_view tier;     // its name today: "L2"
  std::string_view cadence;  // that it implies; empty: none
};

const ScopeAlias* scope_alias(std::string_view scope);  // nullptr: the name stays

// Each notes a word that nothing asks for, with the nearest known one.
void check_scope(const discover::YamlNode& node, Findings& findings);
void check_platform(const discover::YamlNode& node, Findings& findings);
void check_environment(const discover::YamlNode& node, Findings& findings);

}  // namespace assay::recipe
