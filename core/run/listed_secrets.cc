#include "core/run/listed_secrets.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/golden/json_text.h"

namespace assay::run {
namespace {

using Json = nlohmann::ordered_json;

std::string lower_of(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

void add_all(const Json& json, command::Redactor* redactor) {
  if (json.is_string()) redactor->add_secret(json.get_ref<const std::string&>());
  if (!json.is_structured()) return;
  for (const Json& item : json) add_all(item, redactor);
}

// "Bearer VALUE" is echoed as a whole and as the value alone.
void add_header(const std::string& value, command::Redactor* redactor) {
  redactor->add_secret(value);
  if (const size_t blank = value.rfind(' '); blank != std::string::npos) redactor->add_secret(value.substr(blank + 1));
}

void add_headers(const Json& headers, command::Redactor* redactor) {
  if (!headers.is_object()) return add_all(headers, redactor);
  for (const auto& [name, value] : headers.items()) {
    const std::string lower = lower_of(name);
    if (lower == "accept" || lower == "content-type" || lower == "user-agent") continue;
    if (value.is_string()) {
      add_header(value.get_ref<const std::string&>(), redactor);
    } else {
      add_all(value, redactor);
    }
  }
}

void add_texts(const Json& json, command::Redactor* redactor) {
  if (json.is_string()) return redactor->add_words({json.get<std::string>()});
  if (!json.is_array()) return;
  std::vector<std::string> words;
  for (const Json& item : json) {
    if (item.is_string()) words.push_back(item.get<std::string>());
  }
  redactor->add_words(words);
}

void add_listed(const Json& json, command::Redactor* redactor) {
  if (!json.is_structured()) return add_texts(json, redactor);
  if (json.is_array()) {
    add_texts(json, redactor);
    for (const Json& item : json) {
      if (item.is_structured()) add_listed(item, redactor);
    }
    return;
  }
  for (const auto& [name, member] : json.items()) {
    if ((name == "environment" || name == "variables") && member.is_object()) {
      for (const auto& [variable, value] : member.items()) {
        if (value.is_string()) redactor->add(variable, value.get_ref<const std::string&>());
      }
    } else if (lower_of(name) == "headers") {
      add_headers(member, redactor);
    } else if (lower_of(name).ends_with("_variable")) {
      // Who mistakes it gives the secret itself.
      if (member.is_string() && !command::is_variable_name(member.get_ref<const std::string&>())) {
        add_all(member, redactor);
      }
    } else if (command::is_secret_option(name)) {
      add_all(member, redactor);
    }
    add_listed(member, redactor);
  }
}

}  // namespace

void add_listed_secrets(const std::string& options, command::Redactor* redactor) {
  if (options.size() > 2 && !json::deeper_than(options, json::kDeepest))
    add_listed(Json::parse(options, nullptr, false), redactor);
}

}  // namespace assay::run
