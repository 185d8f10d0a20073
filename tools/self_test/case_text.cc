#include "tools/self_test/case_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/discover/input_path.h"

namespace assay::self_test {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 3> kPaths = {"--load", "--tokenizer-model", "--prompt-file"};

// A scalar in double quotes: JSON's spelling is YAML's too.
std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string absolute(const std::string& path, const std::string& case_dir) {
  const Result<std::string> found = discover::find_input(path, case_dir);
  std::error_code code;
  const fs::path whole = found ? fs::absolute(*found, code) : fs::path();
  return whole.empty() || code ? path : whole.lexically_normal().string();
}

std::string value_of(const ModelArg& argument, const std::string& case_dir) {
  for (const std::string_view name : kPaths) {
    if (argument.key == name) return quoted(absolute(argument.text, case_dir));
  }
  return argument.plain ? argument.text : quoted(argument.text);
}

std::string metamorphic_text(const MetamorphicBlock& block) {
  std::string text;
  const auto add = [&](const char* name, const auto& values) {
    if (!values.empty()) text += fmt::format("    {}: [{}]\n", name, fmt::join(values, ", "));
  };
  add("relations", block.relations);
  add("batches", block.batches);
  add("chunks", block.chunks);
  add("threads", block.threads);
  if (block.prompt_tokens) text += fmt::format("    prompt_tokens: {}\n", *block.prompt_tokens);
  if (block.new_tokens) text += fmt::format("    new_tokens: {}\n", *block.new_tokens);
  return "  metamorphic:" + (text.empty() ? " all\n" : "\n" + text);
}

}  // namespace

std::string case_text(const TestCase& base, const CaseChange& change) {
  std::string text = fmt::format("TEST_TYPE: {}\nMODE: {}\nENV_VARS:\n", quoted(base.test_type), quoted(base.mode));
  std::map<std::string, std::string> variables;
  for (const EnvVar& variable : base.env_vars) variables[variable.name] = variable.value;
  for (const auto& [name, value] : change.env_vars) variables[name] = value;
  for (const auto& [name, value] : variables) text += fmt::format("  {}: {}\n", quoted(name), quoted(value));
  text += "MODEL_ARGS:\n";
  for (const ModelArg& argument : base.model_args.entries) {
    if (argument.is_list || change.arguments.count(argument.key) > 0) continue;
    text += fmt::format("  {}: {}\n", argument.key, value_of(argument, base.dir));
  }
  for (const auto& [name, value] : change.arguments) text += fmt::format("  {}: {}\n", name, value);
  text += "METRICS:\n";
  for (const std::string& metric : change.metrics) text += fmt::format("  - {}\n", quoted(metric));
  text += "ASSAY:\n  tags: [self-test]\n";
  if (change.metamorphic) {
    text += metamorphic_text(*change.metamorphic);
  } else if (base.assay.golden == GoldenKind::kKnownCompletion) {
    text += "  golden: known_completion\n  known_completion:\n";
    for (const std::string& source : base.assay.known_completion) {
      text += fmt::format("    - {}\n", quoted(absolute(source, base.dir)));
    }
  }
  if (change.timeout_s) text += fmt::format("  timeout: {}s\n", *change.timeout_s);
  if (change.memory_limit) text += fmt::format("  memory_limit: {}\n", *change.memory_limit);
  return text;
}

}  // namespace assay::self_test
