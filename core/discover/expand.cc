#include "core/discover/expand.h"

#include "core/discover/shell_words.h"
#include "core/discover/yaml_text.h"

namespace assay::discover {
namespace {

// ^\OPEN[^CLOSE]+\CLOSE$
bool is_wrapped(std::string_view value, char open, char close) {
  return value.size() > 2 && value.front() == open && value.find(close) == value.size() - 1;
}

// The part of the shell's command line that one line becomes.
Result<std::string> command_text(std::string_view line) {
  const std::string key(line.substr(0, line.find(':')));
  const size_t colon = line.find(": ");
  const Result<std::string> unquoted = xargs_unquote(colon == std::string_view::npos ? line : line.substr(colon + 2));
  if (!unquoted.ok()) return unquoted.status();
  const std::string& value = *unquoted;
  if (value == "true") return key;
  if (is_wrapped(value, '(', ')')) return key + " \"" + value + "\"";
  if (is_wrapped(value, '[', ']')) return key + " " + value.substr(1, value.size() - 2);
  if (value.find_first_of(" |()") != std::string::npos) return key + " \"" + value + "\"";
  return key + " " + value;
}

std::string nemo_text(std::string_view line) {
  constexpr std::string_view kTrue = "=true";
  if (line.ends_with(kTrue)) return std::string(line.substr(0, line.size() - kTrue.size()));
  const size_t equals = line.find('=');
  if (equals == std::string_view::npos || line.find_first_of(" \t\v\f\r", equals) == std::string_view::npos) {
    return std::string(line);
  }
  return std::string(line.substr(0, equals)) + "=\"" + std::string(line.substr(equals + 1)) + "\"";
}

Result<std::vector<std::string>> words_of(const ModelArg& arg, bool nemo) {
  std::vector<std::string> words;
  if (arg.text.empty() && !arg.plain) return words;
  const std::string lines = arg.key + (nemo ? "=" : ": ") + arg.text;
  for (size_t at = 0; at < lines.size();) {
    const size_t end = std::min(lines.find('\n', at), lines.size());
    const std::string_view line = std::string_view(lines).substr(at, end - at);
    at = end + 1;
    if (line.empty()) continue;
    const Result<std::string> command = nemo ? Result<std::string>(nemo_text(line)) : command_text(line);
    if (!command.ok()) return command.status();
    Result<std::vector<std::string>> split = split_shell_words(*command);
    if (!split.ok()) return split.status();
    for (std::string& word : *split) words.push_back(std::move(word));
  }
  return words;
}

}  // namespace

Result<std::vector<ArgumentWord>> expand_arguments(const ModelArgs& args, const std::string& config, bool nemo) {
  std::vector<ArgumentWord> words;
  for (size_t i = 0; i < args.entries.size(); ++i) {
    const ModelArg& arg = args.entries[i];
    Result<std::vector<std::string>> made = words_of(arg, nemo);
    if (!made.ok()) {
      return made.status().with(at_place(config, arg.place.line, arg.place.column) + args.name + " " + arg.key);
    }
    for (size_t k = 0; k < made->size(); ++k) words.push_back({std::move((*made)[k]), i, k == 0});
  }
  return words;
}

}  // namespace assay::discover
