#include "tools/assay/json_option.h"

#include <nlohmann/json.hpp>

#include "core/golden/json_text.h"
#include "core/golden/key_scan.h"

namespace assay::cli {

Result<nlohmann::ordered_json> parse_json_option(const std::string& option, const std::string& word,
                                                 const std::string& example) {
  nlohmann::ordered_json object = nlohmann::ordered_json::parse(word, nullptr, false);
  if (!object.is_object()) return invalid(option + ": expected a JSON object like " + example);
  if (const std::string twice = json::repeated_key(word); !twice.empty()) {
    return invalid(option + ": " + twice + " occurs more than once in one object; keep one");
  }
  if (json::deeper_than(word, json::kDeepest)) {
    return invalid(option + ": it is nested more than " + std::to_string(json::kDeepest) + " deep");
  }
  return object;
}

}  // namespace assay::cli
