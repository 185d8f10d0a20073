#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "core/command/redact.h"
#include "core/discover/case_reader.h"
#include "core/discover/yaml_tree.h"
#include "core/golden/golden_name.h"
#include "core/run/journal.h"
#include "core/run/secrets.h"
#include "tools/assay/ci_words.h"
#include "tools/assay/json_option.h"
#include "tools/assay/run_options.h"
#include "tools/assay/run_reporter.h"
#include "tools/assay/version.h"

namespace assay::cli {

namespace po = boost::program_options;
namespace fs = std::filesystem;

namespace {

constexpr double kLongest = 1e9;  // seconds
constexpr mode_t kGroupMayWrite = 0002;

using Values = std::map<std::string, std::string>;

// The rooms that the script gives its processes.
void raise_limits() {
  for (const auto resource : {RLIMIT_NOFILE, RLIMIT_NPROC}) {
    rlimit limit{};
    if (getrlimit(resource, &limit) != 0) continue;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(resource, &limit);
  }
  umask(kGroupMayWrite);
}

Result<TestCase> read_case(const std::string& config) {
  auto text = discover::read_file(config, discover::YamlLimits{}.bytes);
  if (!text) return text.status().with("TRAINING_PARAMS_PATH");
  TestCase test;
  test.config = config;
  const fs::path folder = fs::absolute(config).lexically_normal().parent_path();
  test.dir = folder.string();
  test.name = folder.filename().string();
  test.model = folder.parent_path().filename().string();
  discover::read_config(*std::move(text), test, /*needs_model_args=*/true);
  return test;
}

// NODE_RANK as the script takes it.
std::string node_of(const Values& values) {
  for (const char* name : {"SLURM_NODEID", "NODE_RANK"}) {
    if (const auto found = values.find(name); found != values.end() && !found->second.empty()) return found->second;
  }
  return "0";
}

std::string of(const Values& values, const char* name) {
  const auto found = values.find(name);
  return found == values.end() ? "" : found->second;
}

// All words are exported, as the script does. Those that are secrets are nowhere else: the environment is handed on and
// never written.
void take_words(const Values& words, run::RunOptions* options) {
  for (const auto& [name, value] : words) {
    options->environment[name] = value;
    if (!command::is_secret_name(name)) options->variables[name] = value;
  }
}

Result<run::RunOptions> make_options(const Values& words, const po::variables_map& values, const Words& command) {
  run::RunOptions options;
  options.environment = environment();
  take_words(inherited_ci_words(words, options.environment), &options);
  take_words(words, &options);
  const Values& all = options.environment;
  Result<TestCase> test = read_case(of(all, "TRAINING_PARAMS_PATH"));
  if (!test) return test.status();
  const bool inference = test->mode == "inference";
  test->assay.script = of(all, "TRAINING_SCRIPT_PATH");
  const std::string nodes = of(all, "NUM_NODES").empty() ? of(all, "SLURM_NNODES") : of(all, "NUM_NODES");
  const bool several = !nodes.empty() && nodes != "1";
  if (inference && several) return unsupported("NUM_NODES " + nodes + ": assay runs inference cases on one node");
  options.cases = {*std::move(test)};
  options.engine = values["engine"].as<std::string>();
  options.engine_options = values["engine-options"].as<std::string>();
  options.backend = values["backend"].as<std::string>();
  if (!options.engine_options.empty()) {
    const auto json = parse_json_option("--engine-options", options.engine_options, R"({"processes": 1})");
    if (!json) return json.status();
  }
  options.golden = fs::absolute(of(all, "GOLDEN_VALUES_PATH"));
  if (const auto name = parse_golden_name(options.golden.filename().string())) {
    options.environment_name = name->environment;
    options.platform = name->platform;
  }
  const fs::path output = fs::absolute(of(all, "OUTPUT_PATH"));
  options.results = output / options.golden.filename();
  if (inference && of(all, "INFERENCE_OUTPUT_PATH").empty()) {
    options.variables["INFERENCE_OUTPUT_PATH"] = options.environment["INFERENCE_OUTPUT_PATH"] = options.results;
  }
  options.output = values["output"].as<std::string>();
  if (options.output.empty()) options.output = output / (several ? "assay_node_" + node_of(all) : "assay");
  const double timeout = values["timeout"].as<double>();
  if (!(timeout > 0 && timeout <= kLongest)) return invalid("--timeout: expected seconds > 0, at most 1e9");
  options.case_timeout = std::chrono::milliseconds(static_cast<int64_t>(timeout * 1000));
  options.allow_scripts = values.count("allow-scripts") != 0;
  options.strict = values.count("strict") != 0;
  options.compat = values.count("compat") != 0;
  options.plugins = search_options(values);
  options.worker = fs::path(program_dir()) / "assay-worker";
  options.assay_version = kVersion;
  options.command = command;
  options.cancel = cancel_on_signals();
  return options;
}

// 0 also where the program ended well and the case, or a word, says that nothing is to be compared.
int exit_code_of(const run::RunSummary& summary, bool strict) {
  const run::CaseOutcome& outcome = summary.outcomes.front();
  if (outcome.verdict.verdict == Verdict::kSkipped && outcome.summary.requests > 0) return kExitOk;
  return exit_code(summary.verdicts(), strict);
}

}  // namespace

int ci_command(const Words& words) {
  constexpr const char* kUsage = "assay ci KEY=VALUE... [options]";
  po::options_description description(
      "Takes the words of Megatron-LM's run_ci_test.sh and does what it does with TRAINING_PARAMS_PATH.\noptions");
  description.add_options()("word", po::value<Words>(), "KEY=VALUE")(
      "engine", po::value<std::string>()->default_value("process"), "engine: process runs their launch line")(
      "engine-options", po::value<std::string>()->default_value(""), "JSON object")(
      "backend", po::value<std::string>()->default_value(""), "backend, for an engine that needs one")(
      "output", po::value<std::string>()->default_value(""), "folder for our results (default: OUTPUT_PATH/assay)")(
      "timeout", po::value<double>()->default_value(86400), "seconds a repeat may take if the case does not say")(
      "allow-scripts", "LD_* in ENV_VARS, BEFORE_SCRIPT and AFTER_SCRIPT")("strict", "EQUIVALENT does not pass")(
      "compat", po::value<std::string>(), "megatron: tell the verdict of Megatron-LM's comparator beside ours")(
      "plugin-path", po::value<Words>(), "folder to look for plugins in first; repeatable");
  po::variables_map values;
  Words rest = words;
  std::erase(rest, "--");
  if (const auto code = parse(kUsage, description, "word", rest, &values)) return *code;
  if (const Status known = check_compat(values); !known.ok()) return fail(known);
  const Result<Values> given = parse_ci_words(all(values, "word"), environment());
  if (!given) return fail(given.status());
  const command::Redactor redactor(*given);
  const std::vector<std::string> missing = missing_ci_words(*given, environment());
  if (!missing.empty()) {
    return fail(
        invalid(fmt::format("ci: missing or empty: {}; run_ci_test.sh needs them too", fmt::join(missing, ", "))));
  }
  raise_limits();
  for (const auto& [name, value] : *given) std::cout << name << "=" << redactor.value(name, value) << "\n";
  std::cout.flush();
  Words command = {"assay", "ci"};
  for (const std::string& word : redactor.words(words)) command.push_back(word);
  const Result<run::RunOptions> options = make_options(*given, values, command);
  if (!options) return fail(options.status());
  run::RunRecord about;
  about.command = run::secrets_of(*options, {}).words(options->command);  // those of --engine-options too
  about.environment = options->environment_name;
  about.strict = options->strict;
  RunReporter reporter(std::cout, {.colour = false, .terminal = false, .strict = options->strict, .quiet = false}, {},
                       about);
  // Megatron-LM's scripts run a case again and again with one OUTPUT_PATH.
  if (Status free = run::discard_run(options->output); !free.ok()) return fail(free);
  const auto summary = run::run(*options, reporter);
  if (const auto broken = broken_run(summary, reporter, options->strict)) return *broken;
  return exit_code_of(*summary, options->strict);
}

}  // namespace assay::cli
