#include "plugins/launchers/common/options.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>

#include "core/discover/nearest.h"

namespace assay::launchers {

Status check_names(std::string_view text, const std::string& what, std::initializer_list<std::string_view> known) {
  if (text.empty()) return {};
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) return invalid(what + ": not a JSON object: " + std::string(text.substr(0, 60)));
  for (const auto& member : json.items()) {
    if (std::find(known.begin(), known.end(), member.key()) != known.end()) continue;
    std::string names;
    for (const std::string_view name : known) names += (names.empty() ? "" : ", ") + std::string(name);
    return invalid(what + ": unknown member " + member.key() +
                   discover::did_you_mean(member.key(), std::span(known.begin(), known.size())) + "; known: workers, " +
                   names);
  }
  return {};
}

}  // namespace assay::launchers
