#include "core/run/case_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "assay/golden.h"
#include "backends/model/checkpoint/checkpoint.h"
#include "backends/model/config/resolve_model.h"
#include "core/discover/arguments.h"
#include "core/discover/input_path.h"
#include "core/run/backend_choice.h"
#include "core/run/case_digest.h"
#include "core/run/case_time.h"
#include "core/run/deterministic_mode.h"
#include "core/run/foreign_case.h"
#include "core/run/process.h"
#include "core/run/repeat_count.h"
#include "core/run/result_path.h"
#include "core/train/uncompared.h"

namespace assay::run {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

constexpr int64_t kTikTokenizerVocabulary = 131072;  // ids of a TikTokenizer without --vocab-size

Json tokenizer_json(const model::TokenizerSpec& spec) {
  Json json = {{"type", spec.type},
               {"model", spec.model.string()},
               {"pattern", spec.pattern},
               {"num_special", spec.num_special},
               {"special_tokens", spec.special_tokens}};
  if (spec.vocab_size) json["vocab_size"] = *spec.vocab_size;
  if (spec.null_eod_id) json["null_eod_id"] = *spec.null_eod_id;
  return json;
}

// For an engine with a KV buffer. The dynamic scripts size sequences by their own requests, the static one by
// --inference-max-seq-length.
void add_buffered(const discover::EngineOptions& options, const std::function<void(const char*, Json)>& add) {
  const discover::BufferedArguments& b = options.buffered;
  add("buffer_size_gb", b.buffer_size_gb);
  add("block_size", b.block_size);
  if (b.max_requests) add("max_requests", *b.max_requests);
  add("max_tokens", b.max_tokens);
  add("max_sequence_length", b.dynamic_results ? 0 : options.max_sequence_length);
  add("chunked_prefill", b.chunked_prefill);
  add("prefix_caching", b.prefix_caching);
  add("prefix_caching_eviction_policy", b.eviction_policy);
  add("requests_per_step", b.requests_per_step);
  add("requests_per_second", b.requests_per_second);
  add("seed", options.seed);
  if (!b.stop_words.empty()) add("stop_words", b.stop_words);
  if (b.termination_id) add("termination_id", *b.termination_id);
  add("skip_prompt_logprobs", b.skip_prompt_logprobs);
  if (b.suspend_interval > 0 && b.recompute_on_resume) add("suspend_interval", b.suspend_interval);
  add("results", b.dynamic_results ? "dynamic" : "static");
}

// The options that this engine knows (its schema names them), from what the case says; `extra` (a JSON object or
// empty) goes over them.
std::string engine_options(const plugin::Plugin& engine, const discover::EngineOptions& options, const Json& facts,
                           double seconds, const std::string& extra) {
  const Json schema = Json::parse(engine.options_schema, nullptr, false);
  const Json known = schema.is_object() ? schema.value("properties", Json::object()) : Json::object();
  Json json = Json::object();
  const auto add = [&](const char* name, Json value) {
    if (known.contains(name)) json[name] = std::move(value);
  };
  if (known.contains("buffer_size_gb")) {
    add_buffered(options, add);
  } else {
    add("max_requests", options.max_requests);
    add("max_sequence_length", options.max_sequence_length);
    if (!options.buffered.stop_words.empty()) add("stop_words", options.buffered.stop_words);
  }
  add("case", facts);
  add(kCaseTime, case_time(seconds));
  if (!extra.empty()) json.update(Json::parse(extra));
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// It takes the case's scripts: options_schema says so of its property "case".
bool runs_scripts(const plugin::Plugin& engine) {
  const Json::json_pointer place("/properties/case/properties/before_script");
  return Json::parse(engine.options_schema, nullptr, false).contains(place);
}

constexpr const char* kScript = "TRAINING_SCRIPT_PATH";

// A script of Megatron-LM that does inference: a run may hold cases that train, and the script of these.
bool infers(const std::string& script) {
  return fs::path(script).filename().string().find("inference") != std::string::npos;
}

// Weights of the model, roughly: only the order of groups depends on it.
double weight_elements(const model::ModelConfig& config) {
  const double width = config.hidden_size;
  const double experts = config.moe.experts > 0 ? config.moe.experts * config.moe.ffn_hidden_size : 0;
  return config.num_layers * width * (4 * width + 3 * (config.ffn_hidden_size + experts)) +
         2 * width * config.vocab_size;
}

}  // namespace

CasePreparer::CasePreparer(const RunOptions& options) : options_(options), variables_(variables_of(options)) {}

Result<PreparedCase> CasePreparer::prepare(const TestCase& test, const std::string& id, const plugin::Plugin& engine,
                                           bool golden, const CaseSettings& settings) {
  if (!options_.settings.empty()) variables_ = variables_of(options_, settings);
  const auto script = variables_.set.find(kScript);
  if (!test.assay.script && script != variables_.set.end() && (is_foreign(engine) || infers(script->second))) {
    TestCase with_script = test;
    with_script.assay.script = script->second;
    return prepare(with_script, id, engine, golden, settings);
  }
  const fs::path folder = options_.output / "cases" / id;
  if (options_.variables.count("INFERENCE_OUTPUT_PATH") == 0 &&
      settings.variables.count("INFERENCE_OUTPUT_PATH") == 0) {
    variables_.set["INFERENCE_OUTPUT_PATH"] = (folder / "actual.json").string();
  }
  PreparedCase prepared;
  if (Status taken = take_env_vars(test, &prepared); !taken.ok()) return taken;
  if (Status admitted = check_scripts(test, engine); !admitted.ok()) return admitted;
  Result<discover::ParsedArguments> arguments = discover::read_arguments(test, variables_);
  if (!arguments) return arguments.status();
  CaseOrder& order = prepared.order;
  order.dir = test.dir;
  order.golden = options_.golden.string();
  if (test.metrics) order.metrics = *test.metrics;
  if (golden) order.uncompared = train::why_uncompared(test, variables_);
  order.repeats = std::max(options_.repeat, 1);
  if (order.uncompared.empty()) {
    const auto written = prepared.env_vars.find("N_REPEAT");
    const Result<int> repeats =
        repeats_wanted(options_, settings, written == prepared.env_vars.end() ? nullptr : &written->second);
    if (!repeats) return repeats.status().with(test.config);
    order.repeats = *repeats;
  }
  order.record_quantities = options_.record_quantities;
  order.tolerances = test.assay.tolerance;
  if (golden) {
    if (Status taken = take_known_completion(test, &order); !taken.ok()) return taken;
  }
  order.routing = std::count(order.metrics.begin(), order.metrics.end(), "routing_indices") > 0;
  if (engine.can(ASSAY_CAP_RECORDED)) {
    Result<std::string> recorded = find_recorded(test, id, settings);
    if (!recorded) return recorded.status();
    order.recorded = *std::move(recorded);
    prepared.cost = 1;
    return prepared;
  }
  Result<discover::EngineOptions> options = resolve(test, arguments->record, engine, &prepared);
  if (!options) return options.status();
  if (options->deterministic_mode) {
    std::map<std::string, std::string> variables = options_.environment;
    for (const auto& [name, value] : prepared.env_vars) variables[name] = value;
    const Status checked = check_deterministic_variables(variables);
    if (!checked.ok()) return checked.with(test.config);
    order.deterministic = !wants_case(engine);  // the argument is handed on to those
  }
  Result<std::vector<std::string>> prompts = discover::load_prompts(*options, test.dir);
  if (!prompts) return prompts.status();
  order.prompts = *std::move(prompts);
  if (Status checked = check_results(test, order, *options, folder / "actual.json"); !checked.ok()) return checked;
  order.first_id = options->first_request_id;
  order.max_new_tokens = options->tokens_to_generate;
  order.top_n = options->top_n_logprobs;
  order.logprobs = options->return_log_probs;
  order.temperature = options->temperature;
  order.top_k = options->top_k;
  order.top_p = options->top_p;
  order.seed = static_cast<uint64_t>(options->seed);
  order.passes = options->repeat;
  order.output_every = options->output_every;
  Json facts;
  if (wants_case(engine)) {
    Result<Json> made = case_member(test, *options, variables_, limits_of(test, settings));
    if (!made) return made.status();
    facts = *std::move(made);
    if (!test.before_script.empty()) facts["before_script"] = test.before_script;
    if (!test.after_script.empty()) facts["after_script"] = test.after_script;
    order.passes = 1;  // the arguments say it to the engine
  }
  order.engine_options =
      engine_options(engine, *options, facts, limits_of(test, settings).seconds, options_.engine_options);
  if (!golden) {
    prepared.cost *= order.repeats;
    return prepared;
  }
  if (options->output_path != (folder / "actual.json").string()) order.output_path = options->output_path;
  prepared.cost *= static_cast<double>(order.prompts.size()) * (1 + order.max_new_tokens) * order.repeats;
  return prepared;
}

// Results go over nothing that the case is made of: a run that does this judges itself the next time.
Status CasePreparer::check_results(const TestCase& test, const CaseOrder& order, const discover::EngineOptions& options,
                                   const fs::path& own) {
  std::vector<CaseInput> inputs = {{"the golden", order.golden}};
  if (!options.prompt_file.empty()) {
    if (const Result<std::string> file = discover::find_input(options.prompt_file, test.dir)) {
      inputs.push_back({"the prompt file", *file});
    }
  }
  for (const std::string& source : test.assay.known_completion) {
    const Result<std::string> file = discover::find_input(source, test.dir);
    if (file) inputs.push_back({"the known completion", *file});
  }
  Status checked = check_result_path("--output-path", options.output_path, test, inputs);
  return checked.ok() ? check_result_path("--output", own, test, inputs) : checked;
}

Status CasePreparer::take_known_completion(const TestCase& test, CaseOrder* order) {
  order->known_completion = test.assay.golden == GoldenKind::kKnownCompletion;
  for (const std::string& source : test.assay.known_completion) {
    Result<std::string> found = discover::find_input(source, test.dir);
    if (!found) return found.status().with("ASSAY.known_completion");
    order->known_sources.push_back(*std::move(found));
  }
  return {};
}

Result<std::string> CasePreparer::find_recorded(const TestCase& test, const std::string& id,
                                                const CaseSettings& settings) const {
  std::vector<fs::path> places;
  std::error_code code;
  if (options_.recorded.empty()) {
    places = {fs::path(test.dir) / "recorded.json"};
    if (!options_.golden.empty()) places.push_back(options_.golden);
    const auto first_of = [](const std::string& own, const std::string& other) { return own.empty() ? other : own; };
    const std::string platform = first_of(first_of(settings.platform, options_.platform), default_platform(""));
    const std::string environment = first_of(settings.environment_name, options_.environment_name);
    const Result<GoldenChoice> golden = resolve_golden(test.dir, environment, platform);
    if (golden) places.emplace_back(golden->path);
  } else if (fs::is_regular_file(options_.recorded, code)) {
    places = {options_.recorded};
  } else {
    places = {options_.recorded / "cases" / id / "actual.json", options_.recorded / (id + ".json"),
              options_.recorded / id / "actual.json"};
  }
  std::string tried;
  for (const fs::path& place : places) {
    const fs::file_status found = fs::status(place, code);
    if (fs::is_regular_file(found)) return place.string();
    if (!fs::status_known(found))
      return infra(fmt::format("{}: cannot be looked at: {}", place.string(), code.message()));
    tried += (tried.empty() ? "" : ", ") + place.string();
  }
  return not_found(fmt::format(
      "{}: no recorded results at {}; name the output folder of a run or a file with --recorded", test.name, tried));
}

Status CasePreparer::take_env_vars(const TestCase& test, PreparedCase* prepared) const {
  TestCase copy;
  copy.config = test.config;
  copy.env_vars = test.env_vars;
  if (Status substituted = discover::substitute_env_vars(copy, variables_); !substituted.ok()) return substituted;
  for (const EnvVar& variable : copy.env_vars) {
    if (variable.name.rfind("LD_", 0) == 0 && !options_.allow_scripts) {
      return invalid(
          fmt::format("{}:{}:{}: ENV_VARS sets {}, which loads foreign code into the worker; allow it with "
                      "--allow-scripts or remove it",
                      test.config, variable.place.line, variable.place.column, variable.name));
    }
    prepared->env_vars[variable.name] = variable.value;
  }
  return {};
}

Status CasePreparer::check_scripts(const TestCase& test, const plugin::Plugin& engine) const {
  if (test.before_script.empty() && test.after_script.empty()) return {};
  const std::string which = test.before_script.empty() ? "an AFTER_SCRIPT" : "a BEFORE_SCRIPT";
  if (!runs_scripts(engine)) {
    return unsupported(fmt::format(
        "{}: the case has {}, and engine {} starts no program for it to run around: do in ENV_VARS or before the run "
        "what it does and take it out, or choose an engine that runs a command (--engine process)",
        test.config, which, engine.name));
  }
  if (options_.allow_scripts) return {};
  return unsupported(
      fmt::format("{}: the case has {}, which runs as a shell script of this machine: look at it, then allow it with "
                  "--allow-scripts",
                  test.config, which));
}

// What the supervisor holds the case to.
ForeignLimits CasePreparer::limits_of(const TestCase& test, const CaseSettings& settings) const {
  uint64_t memory = test.assay.memory_limit.value_or(options_.memory_limit);
  if (memory == 0) memory = machine_memory() / 10 * 9;
  return {.seconds = std::chrono::duration<double>(settings.timeout).count(), .memory = memory};
}

Result<discover::EngineOptions> CasePreparer::resolve(const TestCase& test, const model::ArgRecord& given,
                                                      const plugin::Plugin& engine, PreparedCase* prepared) {
  using discover::ArgumentsFor;
  Result<discover::EngineOptions> options =
      discover::resolve_engine_options(test, model::apply_checkpoint_args(given, nullptr),
                                       is_foreign(engine) ? ArgumentsFor::kForeignEngine : ArgumentsFor::kOurEngine);
  prepared->cost = 1;
  if (!options || !engine.can(ASSAY_CAP_NEEDS_BACKEND)) return options;
  const Result<std::string> folder = discover::checkpoint_folder(*options, test.dir);
  if (!folder) return folder.status();
  const Result<model::ArgRecord>& stored = checkpoint_args(*folder);
  if (!stored) return stored.status();
  const model::ArgRecord* checkpoint = stored->empty() ? nullptr : &*stored;
  options = discover::resolve_engine_options(test, model::apply_checkpoint_args(given, checkpoint));
  if (!options) return options;
  model::TokenizerSpec& tokenizer = options->tokenizer;
  if (!tokenizer.model.empty()) {
    Result<std::string> found = discover::find_input(tokenizer.model.string(), test.dir);
    if (!found) return found.status().with("--tokenizer-model");
    tokenizer.model = *found;
  }
  int64_t vocabulary = tokenizer.vocab_size.value_or(0);
  if (vocabulary == 0 && tokenizer.type == "TikTokenizer") vocabulary = kTikTokenizerVocabulary;
  Result<model::ResolvedModel> resolved =
      model::resolve_model({.given = given, .checkpoint = checkpoint, .tokenizer_vocab_size = vocabulary});
  if (!resolved) return resolved.status().with(test.config);
  prepared->cost = std::max(weight_elements(resolved->config), 1.0);
  const Json json = {{"config", Json::parse(model::to_json(resolved->config))},
                     {"checkpoint", *folder},
                     {"tokenizer", tokenizer_json(tokenizer)}};
  prepared->model = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  return options;
}

const Result<model::ArgRecord>& CasePreparer::checkpoint_args(const std::string& folder) {
  const auto known = checkpoint_args_.find(folder);
  if (known != checkpoint_args_.end()) return known->second;
  const auto read = [&folder]() -> Result<model::ArgRecord> {
    Result<std::unique_ptr<model::Checkpoint>> checkpoint = model::Checkpoint::open(folder);
    if (!checkpoint) return checkpoint.status();
    return (*checkpoint)->args();
  };
  return checkpoint_args_.emplace(folder, read()).first->second;
}

}  // namespace assay::run
