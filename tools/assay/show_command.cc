#include <iostream>

#include "assay/golden.h"
#include "backends/model/checkpoint/checkpoint.h"
#include "backends/model/checkpoint/describe.h"
#include "backends/model/config/resolve_model.h"
#include "backends/model/tokenizer/tokenizer.h"
#include "core/command/redact.h"
#include "core/discover/arguments.h"
#include "core/discover/discover.h"
#include "core/discover/engine_options.h"
#include "core/discover/harness_args.h"
#include "core/discover/input_path.h"
#include "core/discover/show.h"
#include "core/golden/date.h"
#include "tools/assay/command.h"

namespace assay::cli {

namespace po = boost::program_options;

namespace {

constexpr const char* kShowUsage = "assay show CASE [options], or: assay show --checkpoint DIR [--json]";

int print(const Result<std::string>& text) {
  if (!text) return fail(text.status());
  std::cout << *text;
  return kExitOk;
}

int show_checkpoint(const std::string& folder, bool json) {
  const auto checkpoint = model::Checkpoint::open(folder);
  if (!checkpoint) return fail(checkpoint.status());
  return print(json ? model::render_checkpoint_json(**checkpoint) : model::render_checkpoint_text(**checkpoint));
}

// The parts of a case that need its files, each with an error line of its own where it cannot be had.
struct Details {
  std::optional<discover::ParsedArguments> arguments;
  std::optional<model::ArgRecord> stored;  // arguments of the checkpoint
  std::optional<model::ResolvedModel> model;
  std::vector<discover::ShownWords> words;
  std::vector<std::string> prompts;
  std::vector<std::string> goldens;
  std::vector<std::string> errors;
  std::vector<std::string> notes;
};

// Keeps the value, or the failure as an error line.
template <class T>
std::optional<T> keep(Result<T> result, Details* details) {
  if (result) return *std::move(result);
  details->errors.push_back(result.status().message());
  return std::nullopt;
}

std::optional<int64_t> tokenizer_vocabulary(model::TokenizerSpec spec, const std::string& case_dir, Details* details) {
  if (!spec.model.empty()) {
    const auto path = keep(discover::find_input(spec.model.string(), case_dir), details);
    if (!path) return std::nullopt;
    spec.model = *path;
  }
  const auto tokenizer = keep(model::open_tokenizer(spec), details);
  if (!tokenizer) return std::nullopt;
  return (*tokenizer)->info().vocab_size;
}

void resolve_model(const TestCase& test_case, Details* details) {
  const model::ArgRecord& given = details->arguments->record;
  auto options =
      keep(discover::resolve_engine_options(test_case, model::apply_checkpoint_args(given, nullptr)), details);
  if (!options) return;
  if (auto prompts = keep(discover::load_prompts(*options, test_case.dir), details)) details->prompts = *prompts;
  const auto weights = discover::find_input(options->load, test_case.dir);
  if (!weights && weights.status().code() == StatusCode::kNotFound) {
    details->notes.push_back("--load: " + weights.status().message() + "; without it the model is not shown");
    return;
  }
  const auto folder = keep(discover::checkpoint_folder(*options, test_case.dir), details);
  if (!folder) return;
  const auto checkpoint = keep(model::Checkpoint::open(*folder), details);
  if (!checkpoint) return;
  details->stored = keep((*checkpoint)->args(), details);
  if (!details->stored) return;
  const model::ArgRecord* stored = details->stored->empty() ? nullptr : &*details->stored;
  options = keep(discover::resolve_engine_options(test_case, model::apply_checkpoint_args(given, stored)), details);
  if (!options) return;
  details->notes.insert(details->notes.end(), options->notes.begin(), options->notes.end());
  const auto vocabulary = tokenizer_vocabulary(options->tokenizer, test_case.dir, details);
  if (!vocabulary) return;
  details->model =
      keep(model::resolve_model({.given = given, .checkpoint = stored, .tokenizer_vocab_size = *vocabulary}), details);
}

// The command line of each run, as Megatron-LM's harness makes it.
void show_words(const TestCase& test_case, const discover::Variables& variables, Details* details) {
  const bool nemo = discover::has_nemo_keys(test_case);
  std::vector<std::string> unset;
  std::vector<std::pair<std::string, int>> runs = {{"MODEL_ARGS", 1}};
  for (const ModelArgs& further : test_case.further_model_args) {
    runs.emplace_back(further.name, std::stoi(further.name.substr(further.name.rfind('_') + 1)));
  }
  for (const auto& [name, number] : runs) {
    auto words = discover::words_to_show(test_case, variables, number, nemo, &unset);
    if (words) {
      details->words.push_back({name, *std::move(words)});
    } else if (test_case.mode != "inference") {
      details->errors.push_back(words.status().message());
    }
  }
  if (unset.empty()) return;
  std::string names;
  for (const std::string& name : unset) names += (names.empty() ? "" : ", ") + name;
  details->notes.push_back("variables that a run has to get with --set or in the environment: " + names);
}

Details look_at(const TestCase& test_case, const po::variables_map& values, discover::Variables variables) {
  Details details;
  // A run provides this one; here it stands for itself.
  variables.environment.emplace("INFERENCE_OUTPUT_PATH", "OUTPUT/cases/CASE/actual.json");
  show_words(test_case, variables, &details);
  if (test_case.mode == "inference") {
    details.arguments = keep(discover::read_arguments(test_case, variables), &details);
    if (details.arguments) resolve_model(test_case, &details);
  }
  if (test_case.assay.metamorphic || test_case.mode != "inference") return details;  // no golden is looked for
  const auto golden =
      keep(resolve_golden(test_case.dir, values["environment"].as<std::string>(), values["platform"].as<std::string>()),
           &details);
  if (golden) details.goldens.push_back(golden->path);
  return details;
}

// Values of variables that are secret by their names are shown by nobody.
void hide_secrets(const discover::Variables& variables, TestCase* test_case, Details* details) {
  command::Redactor redactor;
  for (const auto* map : {&variables.environment, &variables.set}) {
    for (const auto& [name, value] : *map) redactor.add(name, value);
  }
  for (const EnvVar& variable : test_case->env_vars) redactor.add(variable.name, variable.value);
  for (EnvVar& variable : test_case->env_vars) variable.value = redactor.value(variable.name, variable.value);
  const auto hide = [&redactor](std::vector<std::string>& texts) {
    for (std::string& text : texts) text = redactor.text(text);
  };
  hide(details->prompts);
  hide(details->errors);
  hide(details->notes);
  for (discover::ShownWords& shown : details->words) {
    std::vector<std::string> texts;
    for (const discover::ArgumentWord& word : shown.words) texts.push_back(word.text);
    redactor.add_words(texts);  // --hf-token abc: secret by the name of the argument
    texts = redactor.words(texts);
    for (size_t i = 0; i < texts.size(); ++i) shown.words[i].text = texts[i];
  }
  if (!details->arguments) return;
  for (discover::GivenArgument& argument : details->arguments->given) hide(argument.values);
}

}  // namespace

int show_command(const Words& words) {
  po::options_description options("options");
  options.add_options()("case", po::value<Words>(), "case folder or its model_config.yaml")(
      "checkpoint", po::value<std::string>(), "print the tensors of this checkpoint folder instead")(
      "set", po::value<Words>(), "NAME=VALUE: a variable that cases name as ${NAME}; repeatable")(
      "environment", po::value<std::string>()->default_value("dev"), "which golden files: environment")(
      "platform", po::value<std::string>()->default_value("cpu_x86_64"), "which golden files: platform")(
      "json", "print one JSON object");
  po::variables_map values;
  if (const auto code = parse(kShowUsage, options, "case", words, &values)) return *code;
  const Words paths = all(values, "case");
  const bool json = values.count("json") != 0;
  if (values.count("checkpoint") != 0 && paths.empty()) {
    return show_checkpoint(values["checkpoint"].as<std::string>(), json);
  }
  if (paths.size() != 1 || values.count("checkpoint") != 0) {
    return refuse(kShowUsage, "show: expected one CASE, or --checkpoint DIR");
  }
  const auto settings = parse_settings(all(values, "set"));
  if (!settings) return fail(settings.status());
  const auto cases = discover::discover(paths);
  if (!cases) return fail(cases.status());
  if (cases->size() != 1) {
    return fail(invalid("show: " + paths[0] + " holds " + std::to_string(cases->size()) +
                        " cases, expected one; 'assay list " + paths[0] + "' names them"));
  }
  const TestCase& test_case = cases->front();
  discover::Variables variables;
  variables.set.insert(settings->begin(), settings->end());
  for (const auto& [name, value] : environment()) variables.environment.emplace(name, value);
  Details details = test_case.error.ok() ? look_at(test_case, values, variables) : Details();
  if (!test_case.error.ok()) details.errors.push_back(test_case.error.message());
  TestCase shown = test_case;
  hide_secrets(variables, &shown, &details);
  const discover::ShowInput input{.test_case = shown,
                                  .arguments = details.arguments ? &*details.arguments : nullptr,
                                  .model = details.model ? &*details.model : nullptr,
                                  .words = details.words,
                                  .prompts = details.prompts,
                                  .today = utc_today(),
                                  .judging_goldens = details.goldens,
                                  .errors = details.errors,
                                  .notes = details.notes};
  std::cout << (json ? discover::show_json(input) : discover::show_text(input));
  return details.errors.empty() ? kExitOk : kExitFailed;
}

}  // namespace assay::cli
