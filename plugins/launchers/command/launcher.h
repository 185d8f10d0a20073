// Workers started by a command of the user's: ssh, kubectl, srun, anything that runs a program somewhere.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "assay/plugin_abi.h"
#include "core/command/command.h"
#include "plugins/launchers/command/hosts.h"
#include "plugins/launchers/command/options.h"
#include "plugins/launchers/command/template.h"
#include "plugins/launchers/common/job.h"

namespace assay::launchers {

// Methods as assay_launcher_table says. A thread of its own starts what waits and looks after what runs, so that slots
// are used at once. For one caller at a time.
class CommandLauncher {
 public:
  static Result<std::unique_ptr<CommandLauncher>> open(const assay_launcher_config& config);
  ~CommandLauncher();
  CommandLauncher(const CommandLauncher&) = delete;
  CommandLauncher& operator=(const CommandLauncher&) = delete;

  // Writes a script for each task and puts the tasks into the queue.
  Result<uint64_t> start(Job job);
  Result<std::vector<State>> poll(uint64_t id);
  Status cancel(uint64_t id, std::optional<size_t> task);

 private:
  struct Running {
    std::optional<command::Command> process;  // of `start`; over where the task has an id of its own
    std::optional<size_t> host;
    std::string id;  // printed by `start`, where there is a `poll`
    std::string output;
    std::string errors;
    State state;
    bool cancelled = false;
    std::chrono::steady_clock::time_point deadline;
    std::chrono::steady_clock::time_point next_poll;
  };
  struct Entry {
    Job job;
    std::vector<Running> tasks;
  };

  CommandLauncher(CommandOptions options, std::filesystem::path folder);
  void work();
  void begin(Entry& entry, size_t task);
  void look_after(Entry& entry, size_t task);
  void started(Entry& entry, size_t task, const command::CommandEnd& end);
  void ended(Running& running, const command::CommandEnd& end);
  void ask(Entry& entry, size_t task);
  void end(Running& running, State state);
  void stop(Entry& entry, size_t task);
  std::string script_of(const Job& job, size_t task) const;
  TemplateValues values(const Job& job, size_t task, const Running& running) const;

  CommandOptions options_;
  std::filesystem::path folder_;
  Hosts hosts_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopped_ = false;
  std::map<uint64_t, Entry> jobs_;
  uint64_t last_id_ = 0;
  std::thread thread_;
};

}  // namespace assay::launchers
