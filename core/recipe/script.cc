#include "core/recipe/script.h"

#include <algorithm>
#include <cctype>

namespace assay::recipe {
namespace {

bool name_char(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

bool comment(std::string_view line) {
  const size_t first = line.find_first_not_of(" \t");
  return first != std::string_view::npos && line[first] == '#';
}

// The shell word that begins at `at`, inside the quote that opened before it (or '\0'); one more layer of quotes inside
// it, as in "NAME=\"a b\"" or "NAME='a b'", is taken off.
std::string word_at(std::string_view line, size_t at, char quote) {
  std::string word;
  for (; at < line.size(); ++at) {
    const char c = line[at];
    if (quote != '\0' ? c == quote : std::isspace(static_cast<unsigned char>(c)) != 0) break;
    if (c == '\\' && quote != '\'' && at + 1 < line.size()) {
      word += line[++at];
    } else {
      word += c;
    }
  }
  const bool wrapped = word.size() >= 2 && (word[0] == '"' || word[0] == '\'') && word.back() == word[0];
  return wrapped ? word.substr(1, word.size() - 2) : word;
}

void take_word(std::string_view line, std::string_view name, std::string& into) {
  for (size_t at = line.find(name); at != std::string_view::npos; at = line.find(name, at + 1)) {
    const size_t equals = at + name.size();
    if (equals >= line.size() || line[equals] != '=' || (at > 0 && name_char(line[at - 1]))) continue;
    const char before = at > 0 ? line[at - 1] : '\0';
    const bool inside = before == '"' || before == '\'';
    const char after = equals + 1 < line.size() ? line[equals + 1] : '\0';
    if (!inside && (after == '"' || after == '\'')) {
      into = word_at(line, equals + 2, after);
    } else {
      into = word_at(line, equals + 1, inside ? before : '\0');
    }
  }
}

bool flag(const TestCase& test, std::string_view key) {
  const auto& entries = test.model_args.entries;
  const auto found = std::find_if(entries.begin(), entries.end(), [&](const ModelArg& arg) { return arg.key == key; });
  return found != entries.end() && found->text != "false" && found->text != "False" && found->text != "FALSE";
}

bool holds(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

template <class Take>
void each_line(std::string_view script, const Take& take) {
  while (!script.empty()) {
    const size_t end = std::min(script.find('\n'), script.size());
    const std::string_view line = script.substr(0, end);
    script.remove_prefix(std::min(end + 1, script.size()));
    if (!comment(line)) take(line);
  }
}

}  // namespace

ScriptWords script_words(std::string_view script) {
  ScriptWords words;
  each_line(script, [&words](std::string_view line) {
    take_word(line, "TRAINING_SCRIPT_PATH", words.training_script);
    take_word(line, "TRAINING_PARAMS_PATH", words.params);
    take_word(line, "GOLDEN_VALUES_PATH", words.golden);
  });
  return words;
}

std::string script_word(std::string_view script, std::string_view name) {
  std::string value;
  each_line(script, [&](std::string_view line) { take_word(line, name, value); });
  return value;
}

std::string flavour_of(const ScriptWords& words, std::string_view script, const TestCase* test) {
  const std::string& path = words.training_script;
  const std::string name = path.substr(path.rfind('/') + 1);
  if (name == "gpt_static_inference.py") {
    if (test == nullptr) return "static";
    return flag(*test, "--use-legacy-static-engine") ? "static-legacy" : "static-dyn";
  }
  if (name == "gpt_dynamic_inference.py") return "dynamic";
  if (name == "gpt_dynamic_inference_with_coordinator.py") return "dyn+coord";
  if (name == "offline_inference.py") {
    if (test == nullptr) return "api";
    return std::string(flag(*test, "--async-mode") ? "api-async" : "api-sync") +
           (flag(*test, "--use-coordinator") ? "+coord" : "");
  }
  if (holds(path, "nemo")) return "nemo";
  if (name == "train_rl.py" || holds(name, "grpo")) return "rl";
  if (holds(script, "serve_smoke.py") || holds(name, "server")) return "server";
  if (holds(name, "pretrain") || holds(name, "train")) return "pretraining";
  if (!path.empty()) return test != nullptr && test->mode == "pretraining" ? "pretraining" : "script";
  if (holds(script, "unit_tests")) return "unit-tests";
  if (holds(script, "performance_tests")) return "performance";
  return "script";
}

std::string engine_of_flavour(std::string_view flavour) {
  if (flavour == "static-legacy") return "static_legacy";
  return flavour == "dynamic" ? "buffered" : "";
}

}  // namespace assay::recipe
