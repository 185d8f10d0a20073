#include "tools/assay/run_options.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <ctime>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/discover/discover.h"
#include "core/discover/yaml_json.h"
#include "tools/assay/json_option.h"
#include "tools/assay/version.h"

namespace assay::cli {

namespace po = boost::program_options;

namespace {

constexpr double kLongestTimeout = 1e9;  // seconds; a clock in nanoseconds ends at 9.2e9

std::atomic<bool> cancel_requested{false};  // NOLINT: a signal handler can reach nothing else

void request_cancel(int /*signal*/) { cancel_requested = true; }

// assay-out/20261129-101500-4711 below the current folder.
std::string default_output() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char stamp[32];
  std::strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S", &utc);
  return "assay-out/" + std::string(stamp) + "-" + std::to_string(getpid());
}

Status check_names(const run::RunOptions& options) {
  if (options.environment_name.empty()) return invalid("--environment '': expected a plain name like dev");
  for (const auto& [option, word] :
       {std::pair("--environment", &options.environment_name), std::pair("--platform", &options.platform)}) {
    if (word->find('/') != std::string::npos || word->starts_with('.')) {
      return invalid(std::string(option) + " '" + *word + "': expected a plain name like dev or cpu_x86_64");
    }
  }
  for (const auto& [option, word] : {std::pair("--engine-options", &options.engine_options),
                                     std::pair("--backend-options", &options.backend_options)}) {
    if (word->empty()) continue;
    if (const auto json = parse_json_option(option, *word, R"({"isa":"avx2"})"); !json) return json.status();
  }
  return {};
}

// Results to replay that nobody replays would be passed over in silence.
Status check_recorded(const run::RunOptions& options) {
  if (options.recorded.empty()) return {};
  std::error_code code;
  if (!std::filesystem::exists(options.recorded, code)) {
    return not_found("--recorded " + options.recorded.string() + ": no such folder or file");
  }
  const bool replays =
      options.engine == "replay" ||
      (options.engine.empty() && std::any_of(options.cases.begin(), options.cases.end(),
                                             [](const TestCase& test) { return test.assay.engine == "replay"; }));
  if (replays) return {};
  return invalid("--recorded " + options.recorded.string() + ": no case runs on engine replay; add --engine replay");
}

}  // namespace

void add_run_options(po::options_description* options, const char* paths) {
  options->add_options()("path", po::value<Words>(), paths)(
      "set", po::value<Words>(), "NAME=VALUE: a variable that cases name as ${NAME}; repeatable")(
      "environment", po::value<std::string>()->default_value("dev"), "which golden files: environment")(
      "platform", po::value<std::string>()->default_value(""), "which golden files: platform (default: the backend's)")(
      "engine", po::value<std::string>()->default_value(""), "engine for all cases (default: each case's own)")(
      "backend", po::value<std::string>()->default_value(""), "backend for all cases: cpu, reference, ...")(
      "backend-options", po::value<std::string>()->default_value(""), "JSON object, e.g. {\"isa\":\"avx2\"}")(
      "engine-options", po::value<std::string>()->default_value(""), "JSON object, over what cases say")(
      "recorded", po::value<std::string>()->default_value(""), "engine replay: an output folder, or a results file")(
      "filter", po::value<std::string>()->default_value(""),
      "name glob, metric:, engine:, tag:, model:, mode:, and/or/not")("jobs", po::value<int>()->default_value(1),
                                                                      "workers at once")(
      "repeat", po::value<int>(), "run each case N times and compare the runs with each other too")(
      "timeout", po::value<double>()->default_value(600), "seconds a case may take if it does not say so itself")(
      "launcher", po::value<std::string>()->default_value(""),
      "who starts workers: slurm, command (default: this process)")(
      "launcher-options", po::value<std::string>()->default_value(""), "JSON object, over what --profile says")(
      "profile", po::value<std::string>()->default_value(""), "YAML or JSON file of options for the launcher")(
      "output", po::value<std::string>()->default_value(""), "folder for the results (default: below assay-out/)")(
      "plugin-path", po::value<Words>(), "folder to look for plugins in first; repeatable")(
      "allow-scripts", "LD_* in ENV_VARS, BEFORE_SCRIPT and AFTER_SCRIPT");
}

namespace {

// --launcher and what is said to it.
Status set_launcher(const po::variables_map& values, run::RunOptions* options) {
  options->launcher = values["launcher"].as<std::string>();
  const std::string& profile = values["profile"].as<std::string>();
  const std::string& words = values["launcher-options"].as<std::string>();
  if (options->launcher.empty()) {
    if (profile.empty() && words.empty()) return {};
    return invalid(std::string(profile.empty() ? "--launcher-options" : "--profile") +
                   ": there is no --launcher to use it");
  }
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  if (!profile.empty()) {
    const Result<std::string> text = discover::yaml_file_to_json(profile);
    if (!text) return text.status().with("--profile");
    json = nlohmann::ordered_json::parse(*text);
  }
  if (!words.empty()) {
    const auto over = parse_json_option("--launcher-options", words, R"({"partition":"gpu"})");
    if (!over) return over.status();
    for (const auto& [name, value] : over->items()) {
      if (name == "workers" && value.is_object() && json.contains(name) && json[name].is_object()) {
        json[name].update(value);
      } else {
        json[name] = value;
      }
    }
  }
  options->launcher_options = json.dump();
  if (values["jobs"].defaulted()) options->jobs = 0;  // the launcher's system knows how many there may be
  return {};
}

}  // namespace

Result<run::RunOptions> make_run_options(const po::variables_map& values, const Words& command) {
  Words paths = all(values, "path");
  if (paths.empty()) paths = {"."};
  auto cases = discover::discover(paths);
  if (!cases) return cases.status();
  return make_run_options(values, command, *std::move(cases));
}

Result<run::RunOptions> make_run_options(const po::variables_map& values, const Words& command,
                                         std::vector<TestCase> cases) {
  run::RunOptions options;
  options.cases = std::move(cases);
  auto settings = parse_settings(all(values, "set"));
  if (!settings) return settings.status();
  options.variables = *std::move(settings);
  options.environment = environment();
  options.environment_name = values["environment"].as<std::string>();
  options.platform = values["platform"].as<std::string>();
  options.engine = values["engine"].as<std::string>();
  options.backend = values["backend"].as<std::string>();
  options.engine_options = values["engine-options"].as<std::string>();
  options.backend_options = values["backend-options"].as<std::string>();
  options.recorded = values["recorded"].as<std::string>();
  if (Status status = check_names(options); !status.ok()) return status;
  if (Status status = check_recorded(options); !status.ok()) return status;
  options.filter = values["filter"].as<std::string>();
  options.jobs = values["jobs"].as<int>();
  if (options.jobs < 1) return invalid("--jobs " + std::to_string(options.jobs) + ": expected 1 or more");
  if (Status status = set_launcher(values, &options); !status.ok()) return status;
  if (values.count("repeat") != 0) {
    options.repeat = values["repeat"].as<int>();
    if (options.repeat < 1 || options.repeat > run::kMostRepeats) {
      return invalid("--repeat " + std::to_string(options.repeat) + ": expected 1 to " +
                     std::to_string(run::kMostRepeats));
    }
  }
  const double timeout = values["timeout"].as<double>();
  if (!(timeout > 0 && timeout <= kLongestTimeout)) return invalid("--timeout: expected seconds > 0, at most 1e9");
  options.case_timeout = std::chrono::milliseconds(static_cast<int64_t>(timeout * 1000));
  options.strict = values.count("strict") != 0;
  options.allow_scripts = values.count("allow-scripts") != 0;
  options.output = values["output"].as<std::string>();
  if (options.output.empty()) options.output = default_output();
  options.plugins = search_options(values);
  options.worker = std::filesystem::path(program_dir()) / "assay-worker";
  options.assay_version = kVersion;
  options.command = command;
  options.cancel = cancel_on_signals();
  return options;
}

const std::atomic<bool>* cancel_on_signals() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) std::signal(signal, request_cancel);
  std::signal(SIGPIPE, SIG_IGN);
  return &cancel_requested;
}

}  // namespace assay::cli
