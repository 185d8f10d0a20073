// One child process in a process group of its own.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "assay/status.h"
#include "core/command/proc_file.h"

namespace assay::run {

struct SpawnOptions {
  std::vector<std::string> argv;                   // argv[0] is the path of the program
  std::map<std::string, std::string> environment;  // the whole environment of the child
  std::filesystem::path log;                       // stdout and stderr are appended to it; stdin is empty
};

// How a process ended.
struct Exit {
  int code = 0;              // exit code; meaningless when a signal ended it
  int signal = 0;            // 0: it exited
  std::string text() const;  // "exit code 3", "SIGSEGV (segmentation fault)"
};

// Not thread-safe. Destroying a running process kills its whole group, and what has left the group or the session.
class Process {
 public:
  // Starts the program as leader of a new process group; the kernel kills it when this process dies. Fails with kInfra
  // when it cannot be made or executed; nothing is left behind then. To be called from the thread that outlives it.
  static Result<Process> spawn(const SpawnOptions& options);

  Process(Process&& other) noexcept;
  Process& operator=(Process&& other) noexcept;
  ~Process();

  pid_t pid() const { return pid_; }

  // How it ended, or nullopt while it runs. Once it ended, what it left running is killed, wherever that went.
  std::optional<Exit> poll();

  // Sends a signal to the whole group.
  void signal_group(int signal) const;

  // Anonymous resident memory of the process, bytes; 0 when it cannot be read.
  uint64_t anonymous_bytes() const;

 private:
  Process(pid_t pid, std::string mark) : pid_(pid), mark_(std::move(mark)) {}

  pid_t pid_ = -1;    // -1: moved from
  std::string mark_;  // in the environment of what descends from it, commands apart: their guardians end those
  std::optional<Exit> exit_;
};

// Sleeps until one of the processes ends or the time is over.
void wait_any(const std::vector<pid_t>& pids, int milliseconds);

using command::proc_kilobytes;

// Bytes of memory that this process and its children may use: what the machine has, or its control group's limit.
uint64_t machine_memory();

}  // namespace assay::run
