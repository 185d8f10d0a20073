#include "core/run/secrets.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "core/command/environment.h"
#include "core/run/listed_secrets.h"

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

bool is_listing(const std::string& name) { return name == "environment" || name == "variables"; }

void add_listed(const CaseOrder& order, command::Redactor* redactor) {
  add_listed_secrets(order.engine_options, redactor);
  for (const std::string& training : order.training) add_listed_secrets(training, redactor);
}

}  // namespace

command::Redactor secrets_of(const RunOptions& options, const Plan& plan) {
  command::Redactor redactor(options.environment);
  redactor.add(options.variables);
  for (const Group& group : plan.groups) redactor.add(group.environment);
  for (const std::string* given : {&options.engine_options, &options.backend_options, &options.launcher_options}) {
    add_listed_secrets(*given, &redactor);
  }
  for (const PlannedCase& planned : plan.cases) add_listed(planned.order, &redactor);
  return redactor;
}

command::Redactor secrets_of_worker(const WorkerPlan& plan, const std::string& secrets) {
  command::Redactor redactor(command::own_environment());
  add_listed_secrets(plan.backend_options, &redactor);
  for (const CaseOrder& order : plan.cases) add_listed(order, &redactor);
  const Json values = Json::parse(secrets.empty() ? "[]" : secrets, nullptr, false);
  for (const Json& value : values.is_array() ? values : Json::array()) {
    if (value.is_string()) redactor.add("SECRET", value.get_ref<const std::string&>());
  }
  return redactor;
}

Status clean_texts(const command::Redactor& redactor, const std::filesystem::path& folder, Below below) {
  namespace fs = std::filesystem;
  Status first;
  if (redactor.empty()) return first;
  constexpr std::array<std::string_view, 4> kTexts = {".log", ".txt", ".json", ".jsonl"};
  constexpr size_t kLogs = 2;  // of kTexts
  std::error_code code;
  std::vector<fs::path> files;
  for (fs::recursive_directory_iterator at(folder, fs::directory_options::skip_permission_denied, code), end;
       !code && at != end; at.increment(code)) {
    std::error_code ignored;
    const std::string name = at->path().filename().string();
    const bool results = name.starts_with("actual") || name == "reference.json";  // numbers, which stay as they are
    const auto* last = below == Below::kAllTexts ? kTexts.end() : kTexts.begin() + kLogs;
    const bool wanted = std::find(kTexts.begin(), last, at->path().extension().string()) != last && !results;
    if (below == Below::kNoneButLogs) at.disable_recursion_pending();
    if (wanted && !at->is_symlink(ignored) && at->is_regular_file(ignored)) files.push_back(at->path());
  }
  for (const fs::path& file : files) {
    if (Status done = redactor.file(file); !done.ok() && first.ok()) first = done;
  }
  return first;
}

void redact(const command::Redactor& redactor, Json* json) {
  if (json->is_string()) {
    if (!redactor.empty()) *json = redactor.text(json->get_ref<const std::string&>());
    return;
  }
  if (!json->is_structured()) return;
  for (auto member = json->begin(); member != json->end(); ++member) {
    if (json->is_object() && is_listing(member.key()) && member->is_object()) {
      for (auto variable = member->begin(); variable != member->end(); ++variable) {
        if (variable->is_string()) {
          *variable = redactor.value(variable.key(), variable->get_ref<const std::string&>());
        } else {
          redact(redactor, &*variable);
        }
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
