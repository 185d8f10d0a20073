#include "core/run/secrets.h"

#include <fmt/format.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <utility>

namespace assay::run {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kOpen = "${assay-secret:";  // number} follows

void replace_all(std::string* text, std::string_view what, const std::string& by) {
  for (size_t at = text->find(what); at != std::string::npos; at = text->find(what, at + by.size())) {
    text->replace(at, what.size(), by);
  }
}

void each_string(Json* json, const std::function<void(std::string*)>& visit) {
  if (json->is_string()) return visit(json->get_ptr<Json::string_t*>());
  if (!json->is_structured()) return;
  for (Json& item : *json) each_string(&item, visit);
}

std::string dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

}  // namespace

command::Redactor secrets_of(const RunOptions& options, const Plan& plan) {
  command::Redactor redactor(options.environment);
  redactor.add(options.variables);
  for (const Group& group : plan.groups) redactor.add(group.environment);
  const Json json = Json::parse(options.engine_options.empty() ? "{}" : options.engine_options, nullptr, false);
  if (json.is_object() && json.contains("environment") && json["environment"].is_object()) {
    for (const auto& [name, value] : json["environment"].items()) {
      if (value.is_string()) redactor.add(name, value.get<std::string>());
    }
  }
  return redactor;
}

void redact(const command::Redactor& redactor, Json* json) {
  if (json->is_string()) {
    if (!redactor.empty()) *json = redactor.text(json->get_ref<const std::string&>());
    return;
  }
  if (!json->is_structured()) return;
  for (auto member = json->begin(); member != json->end(); ++member) {
    const bool listing = json->is_object() && (member.key() == "environment" || member.key() == "variables");
    if (listing && member->is_object()) {
      for (auto variable = member->begin(); variable != member->end(); ++variable) {
        if (variable->is_string()) *variable = redactor.value(variable.key(), variable->get_ref<const std::string&>());
      }
    } else {
      redact(redactor, &*member);
    }
  }
}

HiddenSecrets hide_secrets(const command::Redactor& redactor, const std::string& text) {
  if (redactor.empty()) return {text, ""};
  Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) return {text, ""};
  bool found = false;
  const std::vector<std::string>& spellings = redactor.spellings();
  each_string(&json, [&](std::string* value) {
    for (size_t i = 0; i < spellings.size(); ++i) {
      if (value->find(spellings[i]) == std::string::npos) continue;
      replace_all(value, spellings[i], fmt::format("{}{}}}", kOpen, i));
      found = true;
    }
  });
  if (!found) return {text, ""};
  return {dump(json) + "\n", dump(Json(spellings))};
}

Result<std::string> reveal_secrets(const std::string& text, const std::string& secrets) {
  if (text.find(kOpen) == std::string::npos) return text;
  Json json = Json::parse(text, nullptr, false);
  const Json values = Json::parse(secrets.empty() ? "[]" : secrets, nullptr, false);
  if (json.is_discarded() || !values.is_array()) return invalid("worker plan: it is no JSON document");
  if (values.empty()) {
    return invalid(
        fmt::format("worker plan: it has placeholders of secrets, but {} is not set; a plan is started by "
                    "the runner that wrote it",
                    kSecretsVariable));
  }
  each_string(&json, [&](std::string* value) {
    for (size_t i = 0; i < values.size(); ++i) {
      replace_all(value, fmt::format("{}{}}}", kOpen, i), values[i].get<std::string>());
    }
  });
  return dump(json) + "\n";
}

}  // namespace assay::run
