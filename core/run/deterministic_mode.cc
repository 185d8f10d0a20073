#include "core/run/deterministic_mode.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "core/plugin/plugin.h"

namespace assay::run {
namespace {

struct Rule {
  const char* variable;
  std::vector<std::string> admitted;
  bool list;  // several values, joined by commas
};

const std::vector<Rule>& rules() {
  static const std::vector<Rule> all = {
      {"NCCL_ALGO", {"Ring", "CollnetDirect", "CollnetChain", "^NVLS"}, true},
      {"NVTE_ALLOW_NONDETERMINISTIC_ALGO", {"0"}, false},
      {"CUBLAS_WORKSPACE_CONFIG", {":4096:8", ":16:8"}, false},
  };
  return all;
}

std::vector<std::string> values_of(const std::string& text, bool list) {
  std::vector<std::string> values;
  size_t begin = 0;
  for (size_t comma = 0; list && (comma = text.find(',', begin)) != std::string::npos; begin = comma + 1) {
    values.push_back(text.substr(begin, comma - begin));
  }
  values.push_back(text.substr(begin));
  return values;
}

}  // namespace

Status check_deterministic_variables(const std::map<std::string, std::string>& variables) {
  for (const Rule& rule : rules()) {
    const auto set = variables.find(rule.variable);
    if (set == variables.end()) continue;
    for (const std::string& value : values_of(set->second, rule.list)) {
      if (std::find(rule.admitted.begin(), rule.admitted.end(), value) != rule.admitted.end()) continue;
      return invalid(fmt::format("--deterministic-mode: {} is '{}', expected {}; correct ENV_VARS or leave it unset",
                                 rule.variable, set->second, fmt::join(rule.admitted, " or ")));
    }
  }
  return {};
}

Status check_levels(const std::vector<LevelClaim>& claims) {
  for (const LevelClaim& claim : claims) {
    const uint64_t missing = plugin::kLevels & ~claim.levels;
    if (missing == 0) continue;
    return invalid(fmt::format("--deterministic-mode: {} does not hold {} (it claims {}), expected L1, L2, L3; {}",
                               claim.who, plugin::level_names(missing), plugin::level_names(claim.levels),
                               claim.remedy));
  }
  return {};
}

}  // namespace assay::run
