#include "core/recipe/known_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/discover/nearest.h"
#include "core/golden/platforms.h"
#include "core/golden/text.h"
#include "core/recipe/recipe.h"

namespace assay::recipe {
namespace {

constexpr std::array<ScopeAlias, 4> kAliases = {
    {{"mr-github-slim", "L0", ""}, {"mr-github", "L1", ""}, {"nightly", "L2", "nightly"}, {"weekly", "L3", "weekly"}}};
constexpr std::array<std::string_view, 14> kScopes = {
    "mr", "mr-slim", "mr-github", "mr-github-slim", "nightly", "weekly",  "L0",
    "L1", "L2",      "L3",        "unit-tests",     "release", "cleanup", "L0-smoke"};
constexpr std::array<std::string_view, 4> kParked = {"-broken", "-temp-disabled", "deprecated", "flaky"};
constexpr size_t kShownWord = 60;  // code points of a word quoted in a message

}  // namespace

const ScopeAlias* scope_alias(std::string_view scope) {
  const auto* found =
      std::find_if(kAliases.begin(), kAliases.end(), [&](const ScopeAlias& alias) { return alias.name == scope; });
  return found == kAliases.end() ? nullptr : found;
}

std::string resolve_scope(const std::string& scope) {
  const ScopeAlias* alias = scope_alias(scope);
  return alias == nullptr ? scope : std::string(alias->tier);
}

void check_scope(const discover::YamlNode& node, Findings& findings) {
  const std::string& scope = node.text;
  const bool known =
      std::find(kScopes.begin(), kScopes.end(), scope) != kScopes.end() ||
      std::any_of(kParked.begin(), kParked.end(), [&](std::string_view end) { return scope.ends_with(end); });
  if (known) return;
  findings.warn(node, fmt::format("scope {} is not a known one{}: no CI job asks for it",
                                  text::quoted(scope, kShownWord), discover::did_you_mean(scope, kScopes)));
}

void check_platform(const discover::YamlNode& node, Findings& findings) {
  const auto& known = kKnownPlatforms;
  if (std::find(known.begin(), known.end(), node.text) != known.end()) return;
  std::string squeezed = node.text;
  std::erase_if(squeezed, [](char c) { return c == ' ' || c == '\t' || c == '\n'; });
  findings.warn(node, fmt::format("platform {} is not a known one{}: no filter selects it and no golden is found by it",
                                  text::quoted(node.text, kShownWord), discover::did_you_mean(squeezed, known)));
}

void check_environment(const discover::YamlNode& node, Findings& findings) {
  if (!node.text.empty() && node.text.find_first_of(" \t\n/") == std::string::npos) return;
  findings.warn(node, fmt::format("environment {} is not a plain name: no golden is found by it",
                                  text::quoted(node.text, kShownWord)));
}

}  // namespace assay::recipe
