#include "core/discover/harness_args.h"

#include <algorithm>

#include "core/discover/expand.h"
#include "core/discover/yaml_explode.h"
#include "core/discover/yaml_text.h"
#include "core/discover/yaml_tree.h"

namespace assay::discover {
namespace {

// Stand around the name of a variable that is not set: two characters of private use, which no shell acts on.
constexpr std::string_view kOpen = "\uE000";
constexpr std::string_view kClose = "\uE001";

// A scalar inside a list, written as yq writes it: quotes stay what they are.
Result<std::string> item_text(const YamlNode& item) {
  if (!item.is_scalar()) return invalid("a list in a list, or a mapping in it");
  if (item.text.find('\n') != std::string::npos) return invalid("an item of several lines");
  if (item.quote == '\'') {
    std::string out = "'";
    for (const char c : item.text) out += c == '\'' ? std::string("''") : std::string(1, c);
    return out + "'";
  }
  if (item.quote == '"') {
    std::string out = "\"";
    for (const char c : item.text) {
      if (c == '"' || c == '\\') out += '\\';
      if (c == '\t') {
        out += "\\t";
      } else {
        out += c;
      }
    }
    return out + "\"";
  }
  if (item.text.empty()) return invalid("an item without a value");
  return item.text;
}

Result<std::string> list_text(const YamlNode& list, bool flow) {
  if (list.items.empty()) return std::string("[]");
  std::string out = flow ? "[" : "";
  for (const YamlNode* item : list.items) {
    const Result<std::string> text = item_text(*item);
    if (!text.ok()) return text.status();
    if (item != list.items.front()) out += flow ? ", " : "\n";
    out += (flow ? "" : "- ") + *text;
  }
  return flow ? out + "]" : out;
}

// What yq's tostring makes of a value.
Result<std::string> rendered(const YamlNode& value) {
  switch (value.kind) {
    case YamlNode::Kind::kScalar:
      return value.text;
    case YamlNode::Kind::kSequence:
      return list_text(value, value.flow);
    case YamlNode::Kind::kMap:
      break;
  }
  return invalid("the value is a mapping; a scalar or a list is expected");
}

// A reference that is still there and that no variable answers.
Status check_set(const std::string& text, const Variables& variables) {
  for (const std::string& name : referenced_variables(text)) {
    if (variables.find(name) != nullptr) continue;
    return invalid("variable " + name + " is not set: give it with --set " + name + "=VALUE or in the environment");
  }
  return {};
}

}  // namespace

Result<ModelArgs> harness_args(const TestCase& test_case, const Variables& variables, int run_number) {
  const Result<YamlTree> tree = parse_yaml(substitute_known(test_case.config_text, variables), test_case.config);
  if (!tree.ok()) return tree.status();
  ModelArgs args;
  const std::string further = "MODEL_ARGS_" + std::to_string(run_number);
  const YamlNode* map = nullptr;
  if (tree->root != nullptr && run_number > 1 && (map = tree->root->find(further)) != nullptr) args.name = further;
  if (map == nullptr && tree->root != nullptr) map = tree->root->find("MODEL_ARGS");
  if (map == nullptr || map->is_null()) return args;
  const auto place = [&](const YamlNode& node) {
    return at_place(test_case.config, node.line, node.column) + args.name;
  };
  if (map->kind != YamlNode::Kind::kMap) {
    return invalid(place(*map) + " must be a mapping of --argument: value");
  }
  args.present = true;
  for (const YamlEntry& entry : exploded(*map)) {
    Result<std::string> text = rendered(*entry.value);
    if (!text.ok()) return text.status().with(place(*entry.value) + " " + entry.key);
    if (Status set = check_set(*text, variables); !set.ok()) return set.with(place(*entry.value) + " " + entry.key);
    ModelArg arg;
    arg.key = entry.key;
    arg.plain = entry.value->is_null();
    arg.text = *std::move(text);
    arg.place = {entry.value->line, entry.value->column};
    args.entries.push_back(std::move(arg));
  }
  return args;
}

Result<std::vector<std::string>> harness_words(const TestCase& test_case, const Variables& variables, int run_number,
                                               bool nemo) {
  const Result<ModelArgs> args = harness_args(test_case, variables, run_number);
  if (!args.ok()) return args.status();
  const Result<std::vector<ArgumentWord>> words = expand_arguments(*args, test_case.config, nemo);
  if (!words.ok()) return words.status();
  std::vector<std::string> texts;
  for (const ArgumentWord& word : *words) texts.push_back(word.text);
  return texts;
}

Result<std::vector<ArgumentWord>> words_to_show(const TestCase& test_case, Variables variables, int run_number,
                                                bool nemo, std::vector<std::string>* unset) {
  for (const std::string& name : referenced_variables(test_case.config_text)) {
    if (variables.find(name) == nullptr)
      variables.environment.emplace(name, std::string(kOpen) + name + std::string(kClose));
  }
  const Result<ModelArgs> args = harness_args(test_case, variables, run_number);
  if (!args.ok()) return args.status();
  Result<std::vector<ArgumentWord>> words = expand_arguments(*args, test_case.config, nemo);
  if (!words.ok()) return words;
  for (ArgumentWord& word : *words) {
    for (size_t at = word.text.find(kOpen); at != std::string::npos; at = word.text.find(kOpen)) {
      const size_t end = word.text.find(kClose, at);
      if (end == std::string::npos) break;
      const std::string name = word.text.substr(at + kOpen.size(), end - at - kOpen.size());
      word.text.replace(at, end + kClose.size() - at, "${" + name + "}");
      if (std::find(unset->begin(), unset->end(), name) == unset->end()) unset->push_back(name);
    }
  }
  return words;
}

bool has_nemo_keys(const TestCase& test_case) {
  const auto& entries = test_case.model_args.entries;
  return !entries.empty() &&
         std::none_of(entries.begin(), entries.end(), [](const ModelArg& arg) { return arg.key.starts_with('-'); });
}

}  // namespace assay::discover
