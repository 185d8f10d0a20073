#include "plugins/launchers/common/job.h"

#include <algorithm>
#include <cctype>

#include "assay/sdk.hpp"

namespace assay::launchers {
namespace {

bool is_variable(std::string_view name) {
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0])) != 0) return false;
  return std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
}

}  // namespace

Result<Job> copy_job(const assay_job& job) {
  Job made;
  made.name = sdk::text(job.name);
  if (made.name.empty() || made.name.find_first_of(std::string_view("\0\n\r /", 5)) != std::string::npos) {
    return invalid("job name '" + made.name + "', expected a word without blanks and slashes");
  }
  if (job.task_count == 0) return invalid("job " + made.name + " has no task, expected at least one");
  for (size_t i = 0; i < job.task_count; ++i) {
    Task& task = made.tasks.emplace_back();
    task.log = sdk::text(job.tasks[i].log);
    for (size_t word = 0; word < job.tasks[i].argc; ++word) task.argv.emplace_back(sdk::text(job.tasks[i].argv[word]));
    if (task.argv.empty()) return invalid("task " + std::to_string(i) + " of job " + made.name + " has no words");
  }
  for (size_t i = 0; i < job.environment_count; ++i) {
    const std::string_view pair = sdk::text(job.environment[i]);
    const size_t equals = pair.find('=');
    if (equals == std::string_view::npos || !is_variable(pair.substr(0, equals))) {
      return invalid("variable '" + std::string(pair.substr(0, equals)) + "' of job " + made.name +
                     ": expected a name of letters, digits and _; rename it in ENV_VARS");
    }
    made.environment.emplace_back(pair.substr(0, equals), pair.substr(equals + 1));
  }
  made.devices = job.devices;
  made.seconds = job.seconds;
  made.memory = job.memory;
  made.cpus = job.cpus;
  made.most_at_once = job.most_at_once;
  return made;
}

State lost(std::string reason, bool again) {
  State state;
  state.phase = ASSAY_TASK_LOST;
  state.again = again;
  state.reason = std::move(reason);
  return state;
}

State exited_in_shell(int code) {
  constexpr int kSignalBase = 128;
  constexpr int kMostSignal = 64;
  State state;
  state.phase = ASSAY_TASK_EXITED;
  const bool by_signal = code > kSignalBase && code <= kSignalBase + kMostSignal;
  (by_signal ? state.signal : state.exit_code) = by_signal ? code - kSignalBase : code;
  return state;
}

std::string shell_quoted(std::string_view word) {
  std::string made = "'";
  for (const char c : word) {
    if (c == '\'') {
      made += "'\\''";
    } else {
      made += c;
    }
  }
  return made + "'";
}

std::string shell_quoted(const std::vector<std::string>& words) {
  std::string made;
  for (const std::string& word : words) made += (made.empty() ? "" : " ") + shell_quoted(word);
  return made;
}

std::string export_lines(const Job& job) {
  std::string made;
  for (const auto& [name, value] : job.environment) made += "export " + name + "=" + shell_quoted(value) + "\n";
  return made;
}

}  // namespace assay::launchers
