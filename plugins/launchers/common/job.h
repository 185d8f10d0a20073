// A job in C++ types, and what its script and its command lines are made of.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "assay/plugin_abi.h"
#include "assay/status.h"

namespace assay::launchers {

struct Task {
  std::vector<std::string> argv;
  std::string log;
};

// See assay_job.
struct Job {
  std::string name;
  std::vector<Task> tasks;
  std::vector<std::pair<std::string, std::string>> environment;
  uint32_t devices = 0;
  double seconds = 0;
  uint64_t memory = 0;
  uint32_t cpus = 0;
  uint32_t most_at_once = 0;
};

// kInvalid: no task, a task without words, a name that is empty or holds a NUL, a line end, a blank or a slash, a
// variable without = or whose name is none.
Result<Job> copy_job(const assay_job& job);

// See assay_task_state.
struct State {
  assay_task_phase phase = ASSAY_TASK_WAITING;
  int exit_code = 0;
  int signal = 0;
  int restarts = 0;
  bool again = false;
  std::string where = {};
  std::string reason = {};

  bool over() const { return phase == ASSAY_TASK_EXITED || phase == ASSAY_TASK_LOST; }
};

State lost(std::string reason, bool again);

// Of a process that a shell waited for: 128 + n is signal n.
State exited_in_shell(int code);

// `word` as one word of a POSIX shell, whatever it holds.
std::string shell_quoted(std::string_view word);
std::string shell_quoted(const std::vector<std::string>& words);

// Lines that set the job's variables for what follows in a shell script.
std::string export_lines(const Job& job);

}  // namespace assay::launchers
