#include "plugins/engines/process/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/discover/shell_words.h"
#include "core/golden/json_text.h"
#include "core/golden/key_scan.h"
#include "core/golden/text.h"
#include "plugins/engines/common/options_json.h"

namespace assay::engines {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kWhat = "options of engine process";
constexpr int64_t kOutputLimit = 1LL << 30;
constexpr double kMostSeconds = 1e9;  // 30 years; a clock in nanoseconds ends at 292

// Members that have two forms get the one that OptionsReader reads: a command is a list of words, and so are names.
Status unify(Json& json) {
  if (const auto command = json.find("command"); command != json.end() && command->is_string()) {
    Result<std::vector<std::string>> words = discover::split_shell_words(command->get<std::string>());
    if (!words) {
      return words.status().with(std::string(kWhat) + ": command, which is split into words but run by no shell");
    }
    *command = *words;
  }
  if (const auto pass = json.find("pass_environment"); pass != json.end() && pass->is_boolean()) {
    if (pass->get<bool>()) {
      json.erase(pass);
    } else {
      *pass = Json::array();
    }
  }
  return {};
}

Status read_case(const std::string& json, CaseFacts* facts) {
  OptionsReader reader(json, std::string(kWhat) + ", member case");
  reader.string("name", &facts->name);
  reader.string("dir", &facts->dir);
  reader.string("config", &facts->config);
  reader.string("output", &facts->output);
  reader.string("output_path", &facts->output_path);
  reader.strings("model_args", &facts->model_args);
  reader.string("script", &facts->script);
  reader.string("launcher", &facts->launcher);
  reader.string("before_script", &facts->scripts.before);
  reader.string("after_script", &facts->scripts.after);
  reader.string("checkpoint", &facts->checkpoint);
  reader.string("tokenizer", &facts->tokenizer);
  reader.number("time_limit_s", {.least = 0, .most = kMostSeconds}, &facts->time_limit_s);
  std::optional<int64_t> memory;
  reader.integer("memory_limit", 0, INT64_MAX, &memory);
  facts->memory_limit = memory.value_or(0);
  reader.integer("first_id", 0, INT32_MAX, &facts->first_id);
  reader.integer("output_every", 1, INT32_MAX, &facts->output_every);
  return reader.finish();
}

bool has_nul(const std::string& text) { return text.find('\0') != std::string::npos; }

// What no system can start, whatever the machine.
Status check_startable(const ProcessOptions& options) {
  for (const auto& [name, words] : {std::pair("command", &options.command), std::pair("torchrun", &options.torchrun),
                                    std::pair("ft_launcher", &options.ft_launcher)}) {
    if (!words->empty() && words->front().empty()) {
      return invalid(fmt::format("{}: {} begins with an empty word; the first one names a program", kWhat, name));
    }
    if (std::any_of(words->begin(), words->end(), has_nul)) {
      return invalid(
          fmt::format("{}: {} has a word with a NUL, which ends it for the system; leave it out", kWhat, name));
    }
  }
  for (const auto& [name, value] : options.environment) {
    if (name.empty() || name.find('=') != std::string::npos || has_nul(name)) {
      return invalid(
          fmt::format("{}: environment has {}, which is no name of a variable: it is empty, or has a '=' or a "
                      "NUL",
                      kWhat, text::quoted(name, 40)));
    }
    if (has_nul(value)) return invalid(fmt::format("{}: environment: the value of {} has a NUL", kWhat, name));
  }
  if (has_nul(options.folder)) return invalid(fmt::format("{}: folder has a NUL", kWhat));
  return {};
}

}  // namespace

const char* const kProcessOptionsSchema = R"json({
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "type": "object",
  "additionalProperties": false,
  "properties": {
    "command": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}],
      "description": "words of the command, or one string that is split like a shell does, but run by none; {name} is a template variable, {{ and }} are braces; without it {launch} {script} {model_args}, where the case's script is known"},
    "format": {"enum": ["auto", "golden", "lines"], "default": "auto",
      "description": "of the output: Megatron-LM's JSON object of requests, or one JSON object a line"},
    "per_request": {"type": "boolean", "default": false, "description": "one command a request instead of one for all"},
    "environment": {"type": "object", "additionalProperties": {"type": "string"},
      "description": "variables over those that are passed"},
    "pass_environment": {"anyOf": [{"type": "boolean"}, {"type": "array", "items": {"type": "string"}}], "default": true,
      "description": "variables of the worker's environment that the command gets: all, none, or those that are named"},
    "folder": {"type": "string", "description": "working folder; that of the worker without it"},
    "time_limit": {"type": "number", "exclusiveMinimum": 0, "maximum": 1e9, "description": "seconds; that of the case without it"},
    "memory_limit": {"type": "integer", "minimum": 1,
      "description": "bytes of anonymous resident memory of all processes together; that of the case without it"},
    "output_limit": {"type": "integer", "minimum": 1, "default": 1073741824, "description": "bytes of stdout and of stderr"},
    "kill_grace": {"type": "number", "minimum": 0, "default": 5, "description": "seconds from SIGTERM to SIGKILL"},
    "launcher": {"enum": ["torchrun", "ft_launcher"], "description": "of {launch}; LAUNCHER of the case without it"},
    "processes": {"type": "integer", "minimum": 1,
      "description": "of {launch}, on a node; GPUS_PER_NODE of the environment without it, else 8"},
    "torchrun": {"type": "array", "items": {"type": "string"}, "default": ["python", "-m", "torch.distributed.run"]},
    "ft_launcher": {"type": "array", "items": {"type": "string"}, "default": ["ft_launcher"]},
    "case": {"type": "object", "description": "facts about the case; assay fills them in", "properties": {
      "before_script": {"type": "string", "description": "bash text around every command"},
      "after_script": {"type": "string"}}}
  }
})json";

Result<ProcessOptions> parse_process_options(std::string_view text) {
  Json document = Json::parse(text.empty() ? "{}" : text, nullptr, false);
  std::string unified(text);
  if (document.is_object() && json::repeated_key(text).empty() &&
      !json::deeper_than(text, json::kDeepest)) {  // else the reader has something to say
    if (Status fits = unify(document); !fits.ok()) return fits;
    unified = document.dump(-1, ' ', false, Json::error_handler_t::replace);
  }
  ProcessOptions options;
  options.output_limit = kOutputLimit;
  options.torchrun = {"python", "-m", "torch.distributed.run"};
  options.ft_launcher = {"ft_launcher"};
  OptionsReader reader(unified, kWhat);
  reader.strings("command", &options.command);
  std::string format = "auto";
  reader.choice("format", {"auto", "golden", "lines"}, &format);
  options.format = format == "golden"  ? OutputFormat::kGolden
                   : format == "lines" ? OutputFormat::kLines
                                       : OutputFormat::kAuto;
  reader.boolean("per_request", &options.per_request);
  reader.string_map("environment", &options.environment);
  std::vector<std::string> names;
  reader.strings("pass_environment", &names);
  if (document.is_object() && document.contains("pass_environment") && document["pass_environment"].is_array()) {
    options.pass_environment = std::move(names);
  }
  reader.string("folder", &options.folder);
  reader.number("time_limit", {.above = 0, .most = kMostSeconds}, &options.time_limit);
  std::optional<int64_t> memory;
  reader.integer("memory_limit", 1, INT64_MAX, &memory);
  options.memory_limit = memory.value_or(0);
  std::optional<int64_t> output;
  reader.integer("output_limit", 1, INT64_MAX, &output);
  options.output_limit = output.value_or(kOutputLimit);
  reader.number("kill_grace", {.least = 0, .most = 3600}, &options.kill_grace);
  reader.choice("launcher", {"torchrun", "ft_launcher"}, &options.launcher);
  reader.integer("processes", 1, 1 << 20, &options.processes);
  reader.strings("torchrun", &options.torchrun);
  reader.strings("ft_launcher", &options.ft_launcher);
  std::string facts;
  reader.object("case", &facts);
  if (Status read = reader.finish(); !read.ok()) return read;
  if (options.torchrun.empty() || options.ft_launcher.empty()) {
    return invalid(std::string(kWhat) + ": torchrun and ft_launcher are the words of a program: at least one");
  }
  if (Status can = check_startable(options); !can.ok()) return can;
  if (!facts.empty()) {
    if (Status read = read_case(facts, &options.facts); !read.ok()) return read;
  }
  if (options.command.empty() && !options.facts.script.empty()) {
    options.command = {"{launch}", "{script}", "{model_args}"};  // as Megatron-LM's harness starts it
  }
  return options;
}

}  // namespace assay::engines
