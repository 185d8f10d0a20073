// Writes a new case: a config that runs as it is, with what to change said in it.
#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "core/discover/arguments.h"
#include "core/discover/case_reader.h"
#include "core/discover/discover.h"
#include "core/discover/engine_options.h"
#include "core/discover/input_path.h"
#include "core/discover/json_text.h"
#include "core/discover/yaml_tree.h"
#include "core/golden/text.h"
#include "core/plugin/registry.h"
#include "core/run/reproduce.h"
#include "tools/assay/command.h"

namespace assay::cli {

namespace fs = std::filesystem;
namespace po = boost::program_options;

namespace {

constexpr const char* kNewUsage = "assay new CASE_DIR [--like CASE | --checkpoint DIR] [--prompt TEXT]... [options]";
constexpr const char* kPrompt = "Everyone is permitted to copy and distribute verbatim copies";

constexpr size_t kMostPromptBytes = size_t{1} << 30;

struct NewCase {
  fs::path folder;
  std::string like;
  std::string checkpoint;
  std::string tokenizer_type;
  std::string tokenizer_model;
  Words prompts;
  std::string prompt_file;
  std::string engine;
  Words metrics;
  bool metamorphic = false;
  int tokens = 32;
};

// A YAML scalar in double quotes; JSON's escapes are YAML's.
std::string quoted(const std::string& text) {
  std::string out;
  discover::append_json_string(out, text);
  return out;
}

std::string argument(const std::string& key, const std::string& value) { return fmt::format("  {}: {}\n", key, value); }

// Arguments that every new case states itself.
bool is_own(const std::string& key) {
  return key == "--prompts" || key == "--prompt-file" || key == "--num-tokens-to-generate" || key == "--output-path";
}

// A relative path holds for the new case too where both lie in one repository; else it becomes an absolute one.
std::string value_for(const NewCase& wanted, const TestCase& like, const std::string& value) {
  if (value.find('/') == std::string::npos || value.find("${") != std::string::npos) return value;
  const std::string here = discover::repository_root(fs::absolute(wanted.folder).parent_path().string());
  if (!here.empty() && here == discover::repository_root(fs::absolute(like.dir).string())) return value;
  const Result<std::string> found = discover::find_input(value, like.dir);
  return found ? fs::absolute(*found).lexically_normal().string() : value;
}

Result<std::string> arguments_like(const NewCase& wanted) {
  const Result<std::vector<TestCase>> cases = discover::discover({wanted.like});
  if (!cases) return cases.status();
  if (cases->size() != 1) return invalid(fmt::format("--like {}: {} cases, expected one", wanted.like, cases->size()));
  const TestCase& like = cases->front();
  if (!like.error.ok()) return like.error;
  if (like.mode != "inference")
    return invalid("--like " + wanted.like + ": MODE is " + like.mode + ", expected an inference case");
  std::string text = fmt::format("  # The model and its arguments: those of {}.\n", like.name);
  for (const ModelArg& entry : like.model_args.entries) {
    if (is_own(entry.key)) continue;
    if (entry.is_list) {
      std::string items;
      for (const std::string& item : entry.items) items += (items.empty() ? "" : ", ") + quoted(item);
      text += argument(entry.key, "[" + items + "]");
    } else {
      const std::string value = value_for(wanted, like, entry.text);
      text += argument(entry.key, entry.plain && value == entry.text ? value : quoted(value));
    }
  }
  return text;
}

std::string absolute(const std::string& path) { return fs::absolute(path).lexically_normal().string(); }

std::string arguments_of_checkpoint(const NewCase& wanted) {
  std::string text = "  # The checkpoint, and the model's arguments out of it.\n";
  text +=
      argument("--load", wanted.checkpoint.empty() ? "${CHECKPOINT_LOAD_PATH}" : quoted(absolute(wanted.checkpoint)));
  text += argument("--use-checkpoint-args", "true");
  if (!wanted.tokenizer_type.empty() || !wanted.tokenizer_model.empty()) {
    text += argument("--no-use-tokenizer-model-from-checkpoint-args", "true");  // else the checkpoint's words win
  }
  if (!wanted.tokenizer_type.empty()) text += argument("--tokenizer-type", quoted(wanted.tokenizer_type));
  if (!wanted.tokenizer_model.empty()) text += argument("--tokenizer-model", quoted(absolute(wanted.tokenizer_model)));
  text += "  # Greedy: the largest logit, always. Seeded sampling would be --top_k: 0 with --temperature and --seed.\n";
  text += argument("--temperature", "1.0") + argument("--top_k", "1") + argument("--return-log-probs", "true");
  return text;
}

std::string assay_block(const NewCase& wanted) {
  std::string text = "# What assay adds to the format; Megatron-LM ignores it.\nASSAY:\n";
  text += wanted.engine.empty()
              ? "  # engine: buffered         # or static_legacy, or any engine plugin; else MODEL_ARGS decide\n"
              : "  engine: " + quoted(wanted.engine) + "\n";
  if (wanted.like.empty() && wanted.checkpoint.empty())
    text += "  requires: [CHECKPOINT_LOAD_PATH]   # without it the case is SKIPPED\n";
  if (wanted.metrics.empty() || wanted.metamorphic) {
    text += "  metamorphic: all           # judged by relations between runs of its own: it needs no golden\n";
  } else {
    text += "  # tolerance: {logprobs: 0.001}   # the largest difference that is accepted, per metric\n";
  }
  return text +
         "  timeout: 120s              # beyond it the case is CRASHED\n  # tags: [mine]               # for --filter "
         "tag:mine\n";
}

std::string config_text(const NewCase& wanted, const std::string& arguments) {
  const std::string name = wanted.folder.filename().string();
  std::string text =
      "# A test case: what is asked, and what judges the answer. docs/case-format.md explains every key.\n"
      "TEST_TYPE: regular\nMODE: inference\nMODEL_ARGS:\n";
  text += arguments;
  text += "  # The prompts: one JSON object a line, {\"text\": \"...\"}.\n";
  text += argument("--prompt-file", name + "/prompts.jsonl");
  text += argument("--num-tokens-to-generate", std::to_string(wanted.tokens));
  if (!wanted.metrics.empty() && !wanted.metamorphic) {
    text +=
        "# What is judged against the golden: golden_values_<environment>_<platform>.json in this folder.\nMETRICS:\n";
    for (const std::string& metric : wanted.metrics) text += "  - " + quoted(metric) + "\n";
  }
  return text + assay_block(wanted);
}

// MODEL_ARGS are read by YAML, a shell and a splitter of words: a path that one of them changes would not be found.
Status check_paths(const NewCase& wanted, const std::string& config) {
  TestCase made;
  made.config = "the new case";
  discover::read_config(config, made);
  if (!made.error.ok()) return made.error;
  discover::Variables variables;
  if (wanted.checkpoint.empty()) variables.set["CHECKPOINT_LOAD_PATH"] = "given later";
  const auto arguments = discover::read_arguments(made, variables);
  const auto kept = [&](const char* option, const char* name, const std::string& path) -> Status {
    if (path.empty()) return {};
    const discover::GivenArgument* given = arguments ? arguments->find(name) : nullptr;
    if (given != nullptr && given->values == Words{absolute(path)}) return {};
    return invalid(
        fmt::format("{} {}: MODEL_ARGS cannot hold this path, as a shell would change it; expected one "
                    "without quotes, backslashes, '$', '*', '?', '&', ';' and double blanks: rename it, or "
                    "make a link",
                    option, text::printable(absolute(path))));
  };
  if (Status status = kept("--checkpoint", "load", wanted.checkpoint); !status.ok()) return status;
  return kept("--tokenizer-model", "tokenizer_model", wanted.tokenizer_model);
}

Status write(const fs::path& file, const std::string& text) {
  std::ofstream out(file, std::ios::binary);
  out << text;
  out.close();
  return out ? Status() : infra(file.string() + ": cannot be written: " + std::strerror(errno));
}

// Both files, or none and no new folder.
Status write_case(const fs::path& folder, const std::string& config, const std::string& prompts) {
  std::error_code error;
  fs::path made = folder;  // the first folder that is not there yet
  while (made.has_parent_path() && made != made.parent_path() && !fs::exists(made.parent_path(), error)) {
    made = made.parent_path();
  }
  if (!fs::create_directories(folder, error)) {
    const std::string why = error ? error.message() : "it was made by somebody else";
    return infra(folder.string() + ": cannot be made: " + why);
  }
  Status status = write(folder / "model_config.yaml", config);
  if (status.ok()) status = write(folder / "prompts.jsonl", prompts);
  if (!status.ok()) {
    fs::remove_all(made, error);
    return status;
  }
  std::cout << (folder / "model_config.yaml").string() << "\n" << (folder / "prompts.jsonl").string() << "\n";
  return {};
}

Status check_prompt(const std::string& prompt) {
  if (prompt.empty()) return invalid("is empty; an engine has nothing to go on from, give some text");
  for (size_t at = 0; at < prompt.size();) {
    const text::CodePoint point = text::decode(prompt, at);
    if (!point.valid) return invalid(fmt::format("'{}' is no UTF-8 text", prompt));
    at += point.length;
  }
  return {};
}

// A file of prompts is copied byte by byte, once it reads as a run will read it.
Result<std::string> prompts_text(const NewCase& wanted) {
  if (!wanted.prompt_file.empty()) {
    discover::EngineOptions options;
    options.prompt_file = fs::absolute(wanted.prompt_file).string();
    const Result<std::vector<std::string>> prompts = discover::load_prompts(options, "");
    if (!prompts) return prompts.status();
    for (size_t i = 0; i < prompts->size(); ++i) {
      const Status good = check_prompt((*prompts)[i]);
      if (!good.ok()) return good.with(fmt::format("--prompt-file {}: prompt {}", wanted.prompt_file, i + 1));
    }
    return discover::read_file(options.prompt_file, kMostPromptBytes);
  }
  std::string text;
  for (const std::string& prompt : wanted.prompts.empty() ? Words{kPrompt} : wanted.prompts) {
    if (const Status good = check_prompt(prompt); !good.ok()) return good.with("--prompt");
    text += "{\"text\": " + quoted(prompt) + "}\n";
  }
  return text;
}

// What a run would not find, either.
Status check_plugins(const NewCase& wanted, const plugin::SearchOptions& search) {
  plugin::PluginRegistry registry(search);
  if (!wanted.engine.empty()) {
    const auto engine = registry.find(plugin::Kind::kEngine, wanted.engine);
    if (!engine) return engine.status().with("--engine");
  }
  for (const std::string& metric : wanted.metrics) {
    const auto comparator = registry.find_metric_comparator(metric);
    if (!comparator) return comparator.status().with("--metrics");
  }
  return {};
}

Status check(const NewCase& wanted) {
  std::error_code error;
  if (fs::exists(fs::symlink_status(wanted.folder, error)))
    return invalid(wanted.folder.string() + ": exists already; name a folder that does not");
  const std::string name = wanted.folder.filename().string();
  // It stands in the config as it is, and in whatever names the case.
  constexpr const char* kOfNames = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
  if (name.empty() || name == "." || name == ".." || name.find_first_not_of(kOfNames) != std::string::npos) {
    return invalid("case name '" + text::printable(name) +
                   "': expected letters, digits, '_', '-' and '.', no spaces, for example my_case");
  }
  if (!wanted.like.empty() && !wanted.checkpoint.empty())
    return invalid("--like and --checkpoint: expected one of them");
  if (!wanted.prompts.empty() && !wanted.prompt_file.empty())
    return invalid("--prompt and --prompt-file: expected one of them");
  if (!wanted.checkpoint.empty() && !fs::is_directory(wanted.checkpoint, error))
    return not_found("--checkpoint " + wanted.checkpoint + ": no such folder");
  if (!wanted.tokenizer_model.empty() && !fs::exists(wanted.tokenizer_model, error))
    return not_found("--tokenizer-model " + wanted.tokenizer_model + ": no such file");
  if (!wanted.like.empty() && !(wanted.tokenizer_type + wanted.tokenizer_model).empty())
    return invalid("--like brings its own tokenizer: leave --tokenizer-type and --tokenizer-model out");
  if (wanted.tokens < 1) return invalid("--tokens " + std::to_string(wanted.tokens) + ": expected 1 or more");
  if (wanted.metamorphic && !wanted.metrics.empty())
    return invalid("--metamorphic and --metrics: relations judge without a golden, metrics with one; choose");
  return {};
}

}  // namespace

int new_command(const Words& words) {
  po::options_description options("options");
  options.add_options()("case", po::value<Words>(), "folder to make")(
      "like", po::value<std::string>()->default_value(""), "an inference case whose model and arguments it takes")(
      "checkpoint", po::value<std::string>()->default_value(""),
      "checkpoint folder (default: ${CHECKPOINT_LOAD_PATH}, see run --set)")(
      "tokenizer-type", po::value<std::string>()->default_value(""), "where the checkpoint does not say it")(
      "tokenizer-model", po::value<std::string>()->default_value(""), "likewise")(
      "prompt", po::value<Words>(), "a prompt; repeatable")("prompt-file", po::value<std::string>()->default_value(""),
                                                            "JSON lines with prompts, copied")(
      "tokens", po::value<int>()->default_value(32), "tokens to generate")(
      "engine", po::value<std::string>()->default_value(""), "engine plugin")(
      "metrics", po::value<Words>(), "a metric that judges against a golden; repeatable")(
      "metamorphic", "judged by relations, without a golden (the default without --metrics)")(
      "plugin-path", po::value<Words>(), "folder to look for --engine and --metrics in first; repeatable");
  po::variables_map values;
  if (const auto code = parse(kNewUsage, options, "case", words, &values)) return *code;
  const Words folders = all(values, "case");
  if (folders.size() != 1) {
    return refuse(kNewUsage, "new: " + std::to_string(folders.size()) + " folders given, expected one");
  }
  const auto text = [&values](const char* name) { return values[name].as<std::string>(); };
  for (const char* name : {"like", "checkpoint", "tokenizer-type", "tokenizer-model", "prompt-file", "engine"}) {
    if (values[name].defaulted() || !text(name).empty()) continue;
    return refuse(kNewUsage, fmt::format("new: --{} is empty", name));
  }
  NewCase wanted{.folder = fs::path(folders[0] + "/").lexically_normal().parent_path(),
                 .like = text("like"),
                 .checkpoint = text("checkpoint"),
                 .tokenizer_type = text("tokenizer-type"),
                 .tokenizer_model = text("tokenizer-model"),
                 .prompts = all(values, "prompt"),
                 .prompt_file = text("prompt-file"),
                 .engine = text("engine"),
                 .metrics = all(values, "metrics"),
                 .metamorphic = values.count("metamorphic") != 0,
                 .tokens = values["tokens"].as<int>()};
  if (Status status = check(wanted); !status.ok()) return fail(status);
  const Result<std::string> arguments = wanted.like.empty() ? arguments_of_checkpoint(wanted) : arguments_like(wanted);
  if (!arguments) return fail(arguments.status());
  const Result<std::string> prompts = prompts_text(wanted);
  if (!prompts) return fail(prompts.status());
  if (Status status = check_plugins(wanted, search_options(values)); !status.ok()) return fail(status);
  const std::string config = config_text(wanted, *arguments);
  if (Status status = check_paths(wanted, config); !status.ok()) return fail(status);
  if (Status status = write_case(wanted.folder, config, *prompts); !status.ok()) return fail(status);
  const std::string setting = wanted.like.empty() && wanted.checkpoint.empty() ? " --set CHECKPOINT_LOAD_PATH=DIR" : "";
  std::cout << "next: assay " << (wanted.metrics.empty() ? "run " : "record ")
            << run::shell_word(wanted.folder.string()) << setting << "\n";
  return kExitOk;
}

}  // namespace assay::cli
