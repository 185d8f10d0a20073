#include "tools/assay/recipe_run.h"

#include <fmt/format.h>

#include <map>

namespace assay::cli {
namespace {

constexpr size_t kLongestCaseName = 150;  // bytes: it becomes the name of a folder

// What may stand in the name of a case and of its folder.
std::string plain(const std::string& text) {
  std::string name;
  for (const char c : text.substr(0, kLongestCaseName)) {
    const bool good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      std::string_view("_-.+,").find(c) != std::string_view::npos;
    name += good ? c : '_';
  }
  if (name.empty() || name[0] == '.') name.insert(0, "_");
  return name;
}

std::string name_of(const recipe::Workload& workload) {
  const std::string model = workload.text("model");
  return (model.empty() ? "" : plain(model) + "/") + plain(workload.name);
}

// A whole number above 0 that the recipe gives as one, or as text; 0: it says none. Anything else is an error.
Result<int> number_of(const recipe::Workload& workload, const char* key, int most) {
  const std::string text = workload.text(key);
  int number = 0;
  for (const char c : text) {
    const bool fits = c >= '0' && c <= '9' && number <= most / 10;
    if (!fits)
      return invalid(fmt::format("{}: {} {}: a whole number from 1 to {} is expected", workload.file, key, text, most));
    number = number * 10 + (c - '0');
  }
  if (number >= 1 && number <= most) return number;
  return invalid(fmt::format("{}: {} {}: a whole number from 1 to {} is expected", workload.file, key, text, most));
}

Status take_numbers(const recipe::Workload& workload, run::CaseSettings& settings) {
  constexpr int kLongestTimeLimit = 1'000'000;  // seconds
  if (workload.own_repeat) {
    const Result<int> repeat = number_of(workload, "n_repeat", run::kMostRepeats);
    if (!repeat) return repeat.status();
    settings.repeat = *repeat;
  }
  if (workload.own_time_limit) {
    const Result<int> limit = number_of(workload, "time_limit", kLongestTimeLimit);
    if (!limit) return limit.status();
    settings.timeout = std::chrono::seconds(*limit);
  }
  return {};
}

void settle(run::CaseSettings& settings, Verdict verdict, std::string reason) {
  settings.settled = verdict;
  settings.reason = std::move(reason);
}

// A word that is part of the name of a golden file, or of no file at all.
Status check_word(const recipe::Workload& workload, const char* key) {
  const std::string word = workload.text(key);
  if (word.find('/') == std::string::npos && !word.starts_with('.')) return {};
  return invalid(fmt::format("{}:{}: {} '{}': expected a plain name like dev or dgx_h100", workload.file, workload.line,
                             key, word));
}

Status fill(const recipe::Entry& entry, const std::string& engine, run::CaseSettings& settings) {
  const recipe::Workload& workload = entry.workload;
  if (!workload.error.ok()) return workload.error;
  for (const char* key : {"environment", "platforms"}) {
    if (Status status = check_word(workload, key); !status.ok()) return status;
  }
  settings.environment_name = workload.text("environment");
  settings.platform = workload.text("platforms");
  if (entry.case_dir.empty()) {
    settle(settings, Verdict::kSkipped,
           fmt::format("{}: its script names no TRAINING_PARAMS_PATH, so that there is no case to run", entry.flavour));
    return {};
  }
  if (!entry.test)
    return not_found(fmt::format("{}:{}: case {} does not exist: no {} in {}; name the repository with --root",
                                 workload.file, workload.line, workload.text("test_case"),
                                 std::filesystem::path(entry.words.params).filename().string(), entry.case_dir));
  if (Status status = take_numbers(workload, settings); !status.ok()) return status;
  if (entry.test->mode != "inference" || entry.test->assay.engine || !engine.empty()) return {};
  settings.engine = recipe::engine_of_flavour(entry.flavour);
  if (settings.engine.empty()) {
    settle(settings, Verdict::kNotComparable,
           fmt::format("flavour {}: no engine here is like it; name one with --engine, for example --engine replay",
                       entry.flavour));
  }
  return {};
}

using Given = std::map<std::string, std::string>;

// What the script gives of the names that the case asks for, and what it runs; values that the shell would still
// expand are none.
void take_variables(const recipe::Entry& entry, const discover::Variables& given, run::CaseSettings& settings) {
  if (!entry.test) return;
  const auto take = [&](const std::string& name, const std::string& value) {
    const bool usable = !value.empty() && value.find('$') == std::string::npos && given.find(name) == nullptr;
    if (usable) settings.variables[name] = value;
  };
  for (const std::string& name : discover::referenced_variables(entry.test->config_text)) {
    take(name, recipe::script_word(entry.workload.script, name));
  }
  if (!entry.test->assay.script) take("TRAINING_SCRIPT_PATH", entry.words.training_script);
}

}  // namespace

RecipeCases cases_of(const recipe::Catalogue& catalogue, const std::string& engine, const discover::Variables& given) {
  RecipeCases result;
  std::map<std::string, int> names;
  for (const recipe::Entry& entry : catalogue.entries) ++names[name_of(entry.workload)];
  std::map<std::string, int> used;
  for (const recipe::Entry& entry : catalogue.entries) {
    if (entry.workload.is_build()) continue;
    TestCase test = entry.test.value_or(TestCase{});
    run::CaseSettings settings;
    if (!entry.test) {
      test.dir = entry.case_dir.empty() ? entry.workload.file : entry.case_dir;
      test.config = entry.workload.file;
      test.model = entry.workload.text("model");
    }
    test.name = name_of(entry.workload);
    const std::string scope = entry.workload.text("scope");
    if (names[test.name] > 1 && !scope.empty()) test.name += ":" + plain(scope);
    if (const int before = used[test.name]++; before > 0) test.name += fmt::format("~{}", before + 1);
    take_variables(entry, given, settings);
    if (Status status = fill(entry, engine, settings); !status.ok() && test.error.ok()) test.error = status;
    result.cases.push_back(std::move(test));
    result.settings.push_back(std::move(settings));
  }
  return result;
}

}  // namespace assay::cli
