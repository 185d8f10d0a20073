#include "core/run/reproduce.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/command/redact.h"

namespace assay::run {

std::string shell_word(std::string_view word) {
  const bool plain = !word.empty() && std::all_of(word.begin(), word.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("_-./:=,+@%").find(c) != std::string_view::npos;
  });
  if (plain) return std::string(word);
  const auto control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  if (std::any_of(word.begin(), word.end(), control)) {  // the command has to stay one line
    std::string escaped = "$'";
    for (const char c : word) {
      if (control(c)) {
        escaped += fmt::format("\\{:03o}", static_cast<unsigned char>(c));
      } else {
        if (c == '\'' || c == '\\') escaped += '\\';
        escaped += c;
      }
    }
    return escaped + "'";
  }
  std::string quoted = "'";
  for (const char c : word) {
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

std::string reproduce_command(const RunOptions& options, const std::string& dir, const std::string& relation,
                              const CaseSettings& own) {
  std::string command = "assay run " + shell_word(dir);
  if (options.metamorphic) command += " --metamorphic";
  if (!relation.empty()) command += " --filter " + shell_word("*@" + relation);
  const auto add = [&command](const char* option, const std::string& value) {
    if (!value.empty()) command.append(" ").append(option).append(" ").append(shell_word(value));
  };
  std::map<std::string, std::string> variables = options.variables;
  for (const auto& [name, value] : own.variables) {
    if (options.environment.count(name) == 0) variables.emplace(name, value);
  }
  for (const auto& [name, value] : variables) {
    add("--set", command::Redactor().word(fmt::format("{}={}", name, value)));
  }
  const std::string& environment = own.environment_name.empty() ? options.environment_name : own.environment_name;
  if (environment != "dev") add("--environment", environment);
  add("--platform", own.platform.empty() ? options.platform : own.platform);
  add("--engine", options.engine.empty() ? own.engine : options.engine);
  add("--backend", options.backend);
  add("--backend-options", options.backend_options);
  add("--engine-options", options.engine_options);
  add("--recorded", options.recorded.string());
  const int repeat = options.repeat > 0 ? options.repeat : own.repeat > 1 ? own.repeat : 0;
  if (repeat > 0) add("--repeat", std::to_string(repeat));
  if (own.timeout.count() > 0) add("--timeout", fmt::format("{}", static_cast<double>(own.timeout.count()) / 1000));
  if (options.strict) command += " --strict";
  if (options.allow_scripts) command += " --allow-scripts";
  for (const auto& dir_of_plugins : options.plugins.plugin_path) add("--plugin-path", dir_of_plugins.string());
  return command;
}

}  // namespace assay::run
