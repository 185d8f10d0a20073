#include "core/run/secrets.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <functional>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "core/command/environment.h"
#include "core/command/files_below.h"
#include "core/run/listed_secrets.h"
#include "core/train/case_plan.h"

namespace assay::run {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kOpen = "${assay-secret:";  // number} follows

// `text` with placeholders for spellings[from ...]. What a placeholder stands for, and the placeholder itself, is not
// looked at again: a secret may be part of another, or of a placeholder's own words.
std::string hide(std::string_view text, const std::vector<std::string>& spellings, size_t from, bool* found) {
  while (from < spellings.size() && text.find(spellings[from]) == std::string_view::npos) ++from;
  if (from == spellings.size()) return std::string(text);
  *found = true;
  std::string hidden;
  const std::string& spelling = spellings[from];
  for (size_t at = text.find(spelling); at != std::string_view::npos; at = text.find(spelling)) {
    hidden += hide(text.substr(0, at), spellings, from + 1, found) + fmt::format("{}{}}}", kOpen, from);
    text.remove_prefix(at + spelling.size());
  }
  return hidden + hide(text, spellings, from + 1, found);
}

// The inverse of hide(); false: a placeholder that no value belongs to.
bool reveal(std::string* text, const std::vector<std::string>& values) {
  std::string revealed;
  std::string_view left = *text;
  for (size_t at = left.find(kOpen); at != std::string_view::npos; at = left.find(kOpen)) {
    revealed += left.substr(0, at);
    left.remove_prefix(at + kOpen.size());
    size_t index = 0;
    const auto [stop, error] = std::from_chars(left.data(), left.data() + left.size(), index);
    const auto digits = static_cast<size_t>(stop - left.data());
    if (error != std::errc() || !left.substr(digits).starts_with('}') || index >= values.size()) return false;
    revealed += values[index];
    left.remove_prefix(digits + 1);
  }
  *text = revealed.append(left);
  return true;
}

void each_string(Json* json, const std::function<void(std::string*)>& visit) {
  if (json->is_string()) return visit(json->get_ptr<Json::string_t*>());
  if (!json->is_structured()) return;
  for (Json& item : *json) each_string(&item, visit);
}

std::string dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

// Value of kSecretsVariable; none where it is no list of strings.
std::vector<std::string> values_of(const std::string& secrets) {
  const Json json = Json::parse(secrets, nullptr, false);
  const auto is_string = [](const Json& value) { return value.is_string(); };
  if (!json.is_array() || !std::all_of(json.begin(), json.end(), is_string)) return {};
  return json.get<std::vector<std::string>>();
}

bool is_listing(const std::string& name) { return name == "environment" || name == "variables"; }

void add_listed(const CaseOrder& order, command::Redactor* redactor) {
  add_listed_secrets(order.engine_options, redactor);
  for (const std::string& training : order.training) {
    add_listed_secrets(training, redactor);
    const Result<train::CasePlan> plan = train::parse_case_plan(training);
    if (!plan) continue;
    for (const train::Job& job : plan->runs) {  // texts in the plan's text
      redactor->add(job.environment);
      redactor->add_words(job.arguments);
      redactor->add_words(job.command);
      redactor->add_words({job.before_script, job.after_script});
    }
  }
}

}  // namespace

command::Redactor secrets_of(const RunOptions& options, const Plan& plan) {
  command::Redactor redactor(options.environment);
  redactor.add(options.variables);
  for (const CaseSettings& own : options.settings) redactor.add(own.variables);
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
  for (const std::string& value : values_of(secrets)) {
    if (value != kOpen) redactor.add("SECRET", value);
  }
  return redactor;
}

Status clean_texts(const command::Redactor& redactor, const std::filesystem::path& folder, Below below) {
  namespace fs = std::filesystem;
  Status first;
  if (redactor.empty()) return first;
  constexpr std::array<std::string_view, 4> kTexts = {".log", ".txt", ".json", ".jsonl"};
  constexpr size_t kLogs = 2;  // of kTexts
  std::vector<fs::path> files;
  const bool all = below == Below::kAllTexts;
  first = command::files_below(folder, all ? command::Walk::kAndThoseBelow : command::Walk::kFolderAlone, &files)
              .with("secrets cannot be taken out");
  const auto* last = all ? kTexts.end() : kTexts.begin() + kLogs;
  for (const fs::path& file : files) {
    const std::string name = file.filename().string();
    const bool results = name.starts_with("actual") || name == "reference.json";  // numbers, which stay as they are
    if (results || std::find(kTexts.begin(), last, file.extension().string()) == last) continue;
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
  if (redactor.empty() && text.find(kOpen) == std::string::npos) return {text, ""};
  Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) return {text, ""};
  bool found = false;
  std::vector<std::string> spellings = redactor.spellings();
  spellings.emplace_back(kOpen);  // a text that happens to look like a placeholder stays what it is
  each_string(&json, [&](std::string* value) { *value = hide(*value, spellings, 0, &found); });
  if (!found) return {text, ""};
  return {dump(json) + "\n", dump(Json(spellings))};
}

Result<std::string> reveal_secrets(const std::string& text, const std::string& secrets) {
  if (text.find(kOpen) == std::string::npos) return text;
  Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) return invalid("worker plan: it is no JSON document");
  if (secrets.empty()) {
    return invalid(
        fmt::format("worker plan: it has placeholders of secrets, but {} is not set; a plan is started by "
                    "the runner that wrote it",
                    kSecretsVariable));
  }
  const std::vector<std::string> values = values_of(secrets);
  bool fits = true;
  each_string(&json, [&](std::string* value) { fits = reveal(value, values) && fits; });
  if (fits) return dump(json) + "\n";
  return invalid(
      fmt::format("worker plan: it has placeholders of secrets that {} does not hold ({} value(s)); a plan "
                  "is started by the runner that wrote it",
                  kSecretsVariable, values.size()));
}

}  // namespace assay::run
