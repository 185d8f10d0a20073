#include "core/discover/expand.h"

#include "core/discover/shell_words.h"
#include "core/discover/yaml_text.h"

namespace assay::discover {
namespace {

// ^\OPEN[^CLOSE]+\CLOSE$
bool is_wrapped(std::string_view value, char open, char close) {
  return value.size() > 2 && value.front() == open && value.find(close) == value.size() - 1;
}

// The part of the shell's command line that one entry becomes.
Result<std::string> command_text(const std::string& key, std::string_view raw) {
  const Result<std::string> unquoted = xargs_unquote(raw);
  if (!unquoted.ok()) return unquoted.status();
  const std::string& value = *unquoted;
  if (value == "true") return key;
  if (is_wrapped(value, '(', ')')) return key + " \"" + value + "\"";
  if (is_wrapped(value, '[', ']')) return key + " " + value.substr(1, value.size() - 2);
  if (value.find_first_of(" |()") != std::string::npos) return key + " \"" + value + "\"";
  return key + " " + value;
}

bool is_yaml_true(const ModelArg& arg) {
  return arg.plain && (arg.text == "true" || arg.text == "True" || arg.text == "TRUE");
}

Result<std::vector<std::string>> words_of(const ModelArg& arg) {
  if (arg.is_list && arg.items.size() != 1) {
    if (arg.items.empty()) return invalid("an empty list");
    std::vector<std::string> words = {arg.key};
    words.insert(words.end(), arg.items.begin(), arg.items.end());
    return words;
  }
  std::string text = arg.is_list ? "[" + arg.items[0] + "]" : is_yaml_true(arg) ? "true" : arg.text;
  if (!arg.is_list && text.empty()) {
    if (!arg.plain) return std::vector<std::string>();
    return invalid("there is no value: write true for a flag, or remove the entry");
  }
  while (text.ends_with('\n')) text.pop_back();
  if (text.find('\n') != std::string::npos) {
    return invalid("the value has several lines, each of which the harness would read as an entry of its own");
  }
  const Result<std::string> command = command_text(arg.key.substr(0, arg.key.find(':')), text);
  if (!command.ok()) return command.status();
  return split_shell_words(*command);
}

}  // namespace

Result<std::vector<ArgumentWord>> expand_arguments(const ModelArgs& args, const std::string& config) {
  std::vector<ArgumentWord> words;
  for (size_t i = 0; i < args.entries.size(); ++i) {
    const ModelArg& arg = args.entries[i];
    Result<std::vector<std::string>> made = words_of(arg);
    if (!made.ok()) {
      return made.status().with(at_place(config, arg.place.line, arg.place.column) + args.name + " " + arg.key);
    }
    for (size_t k = 0; k < made->size(); ++k) words.push_back({std::move((*made)[k]), i, k == 0});
  }
  return words;
}

}  // namespace assay::discover
