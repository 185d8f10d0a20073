#include "core/run/deterministic_mode.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

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

Status check_deterministic_mode(const std::map<std::string, std::string>& variables,
                                const std::string& backend_options) {
  for (const Rule& rule : rules()) {
    const auto set = variables.find(rule.variable);
    if (set == variables.end()) continue;
    for (const std::string& value : values_of(set->second, rule.list)) {
      if (std::find(rule.admitted.begin(), rule.admitted.end(), value) != rule.admitted.end()) continue;
      return invalid(fmt::format("--deterministic-mode: {} is '{}', expected {}; correct ENV_VARS or leave it unset",
                                 rule.variable, set->second, fmt::join(rule.admitted, " or ")));
    }
  }
  const auto options = nlohmann::json::parse(backend_options, nullptr, false);
  if (options.is_object() && options.contains("prefill") && options["prefill"] == "fast") {
    return invalid(
        "--deterministic-mode: backend option prefill is 'fast', which holds determinism level L1 only, expected L1 to "
        "L3; leave the option out");
  }
  return {};
}

}  // namespace assay::run
