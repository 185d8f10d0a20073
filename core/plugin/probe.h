// Loads a plugin in a child process first, so that one that crashes or hangs while it is loaded costs nothing.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "core/plugin/plugin.h"

namespace assay::plugin {

// What a body run in a child process came to.
struct ChildReport {
  bool finished = false;  // the body returned; `text` is what it returned
  bool hung = false;      // killed at the time limit
  std::string text;
  std::string death;  // how the child died otherwise, e.g. "SIGSEGV" or "exit code 3"
};

// Forks, runs `body` in the child with stdout and stderr silenced, and returns its text. The child never returns from
// this call and runs no exit handlers. Fails only when no process can be made.
Result<ChildReport> run_in_child(const std::function<std::string()>& body, std::chrono::milliseconds limit);

// Loads `file` in a child process and tells how that went; nothing is loaded here. nullopt: it loads.
std::optional<LoadError> probe(const std::filesystem::path& file,
                               std::chrono::milliseconds limit = std::chrono::seconds(20));

// Name of a signal, e.g. "SIGSEGV"; "signal 40" for those without one.
std::string signal_name(int signal);

}  // namespace assay::plugin
