#include "plugins/engines/common/options_json.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "core/discover/nearest.h"
#include "core/golden/json_text.h"
#include "core/golden/key_scan.h"

namespace assay::engines {
namespace {

constexpr size_t kShownOption = 60;  // bytes of a value in a message; numbers have fewer

}  // namespace

struct OptionsReader::Document {
  nlohmann::json json = nlohmann::json::object();
  std::set<std::string> asked;

  // Null when absent or null.
  const nlohmann::json* find(const char* name) {
    asked.insert(name);
    const auto found = json.find(name);
    return found == json.end() || found->is_null() ? nullptr : &*found;
  }
};

OptionsReader::OptionsReader(std::string_view text, std::string what)
    : document_(std::make_unique<Document>()), what_(std::move(what)) {
  if (text.empty()) return;
  nlohmann::json parsed = nlohmann::json::parse(text, nullptr, false);
  if (const std::string twice = json::repeated_key(text); !twice.empty()) {
    status_ = invalid(what_ + ": " + twice + " occurs more than once in one object; keep one");
  } else if (json::deeper_than(text, json::kDeepest)) {
    status_ = invalid(what_ + ": nested more than " + std::to_string(json::kDeepest) + " deep");
  } else if (parsed.is_object()) {
    document_->json = std::move(parsed);
  } else {
    status_ = invalid(what_ + ": not a JSON object");
  }
}

OptionsReader::~OptionsReader() = default;

void OptionsReader::fail(const char* name, const std::string& expected) {
  if (!status_.ok()) return;
  using nlohmann::json;
  const json& value = document_->json[name];
  // Lists and objects may hold what must not be shown, and a text that is cut hides from whoever looks for it.
  std::string seen = value.is_object()  ? "an object"
                     : value.is_array() ? "a list"
                                        : value.dump(-1, ' ', true, json::error_handler_t::replace);
  if (seen.size() > kShownOption)
    seen = "a text of " + std::to_string(value.get_ref<const std::string&>().size()) + " bytes";
  status_ = invalid(what_ + ": " + name + " is " + seen + ", expected " + expected);
}

void OptionsReader::known(const char* name) { document_->asked.insert(name); }

void OptionsReader::integer(const char* name, int64_t least, int64_t most, std::optional<int64_t>* value) {
  const nlohmann::json* found = document_->find(name);
  if (found == nullptr) return;
  const bool fits = found->is_number_integer() &&
                    (!found->is_number_unsigned() || found->get<uint64_t>() <= static_cast<uint64_t>(INT64_MAX)) &&
                    found->get<int64_t>() >= least && found->get<int64_t>() <= most;
  if (!fits) return fail(name, "an integer from " + std::to_string(least) + " to " + std::to_string(most));
  *value = found->get<int64_t>();
}

void OptionsReader::integer(const char* name, int64_t least, int64_t most, int32_t* value) {
  std::optional<int64_t> wide;
  integer(name, least, most, &wide);
  if (wide) *value = static_cast<int32_t>(*wide);
}

void OptionsReader::number(const char* name, const NumberRange& range, double* value) {
  const nlohmann::json* found = document_->find(name);
  if (found == nullptr) return;
  const double seen = found->is_number() ? found->get<double>() : std::nan("");
  if (seen > range.above && seen >= range.least && seen <= range.most) {
    *value = seen;
    return;
  }
  const auto text = [](double bound) { return nlohmann::json(bound).dump(); };
  std::string expected = "a number";
  if (std::isfinite(range.above)) expected += " above " + text(range.above);
  if (std::isfinite(range.least)) expected += " from " + text(range.least);
  if (std::isfinite(range.most)) expected += " up to " + text(range.most);
  fail(name, expected);
}

void OptionsReader::boolean(const char* name, bool* value) {
  const nlohmann::json* found = document_->find(name);
  if (found == nullptr) return;
  if (!found->is_boolean()) return fail(name, "true or false");
  *value = found->get<bool>();
}

void OptionsReader::choice(const char* name, std::initializer_list<const char*> choices, std::string* value) {
  const nlohmann::json* found = document_->find(name);
  if (found == nullptr) return;
  std::string names;
  for (const char* one : choices) {
    if (found->is_string() && found->get<std::string>() == one) *value = one;
    names += (names.empty() ? "" : ", ") + std::string(one);
  }
  if (!found->is_string() || found->get<std::string>() != *value) fail(name, "one of " + names);
}

void OptionsReader::string(const char* name, std::string* value) {
  const nlohmann::json* found = document_->find(name);
  if (found == nullptr) return;
  if (!found->is_string()) return fail(name, "a string");
  *value = found->get<std::string>();
}

void OptionsReader::strings(const char* name, std::vector<std::string>* value) {
  const nlohmann::json* found = document_->find(name);
  if (found == nullptr) return;
  if (!found->is_array()) return fail(name, "a list of strings");
  std::vector<std::string> list;
  for (const nlohmann::json& item : *found) {
    if (!item.is_string()) return fail(name, "a list of strings");
    list.push_back(item.get<std::string>());
  }
  *value = std::move(list);
}

void OptionsReader::string_map(const char* name, std::map<std::string, std::string>* value) {
  const nlohmann::json* found = document_->find(name);
  if (found == nullptr) return;
  if (!found->is_object()) return fail(name, "an object of strings");
  std::map<std::string, std::string> map;
  for (const auto& [key, item] : found->items()) {
    if (!item.is_string()) return fail(name, "an object of strings");
    map[key] = item.get<std::string>();
  }
  *value = std::move(map);
}

void OptionsReader::object(const char* name, std::string* json) {
  const nlohmann::json* found = document_->find(name);
  if (found == nullptr) return;
  if (!found->is_object()) return fail(name, "an object");
  *json = found->dump();
}

void OptionsReader::objects(const char* name, std::string* json) {
  const nlohmann::json* found = document_->find(name);
  if (found == nullptr) return;
  bool fits = found->is_array();
  for (const nlohmann::json& item : *found) fits = fits && item.is_object();
  if (!fits) return fail(name, "a list of objects");
  *json = found->dump();
}

Status OptionsReader::finish() {
  if (!status_.ok()) return status_;
  for (const auto& member : document_->json.items()) {
    if (document_->asked.contains(member.key())) continue;
    std::string known;
    std::vector<std::string_view> names;
    for (const std::string& name : document_->asked) {
      known += (known.empty() ? "" : ", ") + name;
      names.push_back(name);
    }
    return invalid(what_ + ": unknown member " + member.key() + discover::did_you_mean(member.key(), names) +
                   "; known: " + known);
  }
  return {};
}

}  // namespace assay::engines
