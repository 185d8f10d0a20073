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
#include "plugins/launchers/common/job.h"
#include "plugins/launchers/common/tool.h"

namespace assay::launchers {

// Methods as assay_launcher_table says; none of them waits for a command. A thread of its own starts what waits, and
// `poll` and `cancel` of what runs, some at a time; it looks after all of them without waiting for any. For one caller
// at a time.
class CommandLauncher {
 public:
  static Result<std::unique_ptr<CommandLauncher>> open(const assay_launcher_config& config);
  // Cancels what is left and waits for it; a `start` that runs is waited for first, as it alone tells what to cancel.
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
    std::optional<Tool> question;             // `poll`, while it runs
    std::optional<Tool> order;                // `cancel`, while it runs
    bool ordered = false;                     // `cancel` was run
    std::optional<size_t> host;
    std::string id;  // printed by `start`, where there is a `poll`
    std::string output;
    std::string errors;
    State state;
    bool queued = false;  // `poll` said last that it waits
    bool begun = false;   // `poll` said that it runs
    std::string ending;   // why it is to end before its time; empty: it is not
    bool again = false;   // ended so, its cases may be run again
    std::chrono::steady_clock::time_point begun_at;
    std::chrono::steady_clock::time_point deadline;
    std::chrono::steady_clock::time_point next_poll;
  };
  struct Entry {
    Job job;
    std::vector<Running> tasks;
  };

  CommandLauncher(CommandOptions options, std::filesystem::path folder);
  void work();
  bool busy() const;
  void begin_waiting(Entry& entry);
  void begin(Entry& entry, size_t task);
  void look_after(Entry& entry, size_t task);
  void started(Entry& entry, size_t task, const command::CommandEnd& end);
  void ended(Entry& entry, size_t task, const command::CommandEnd& end);
  void ask_the_next();
  void answered(Running& running, const Job& job, const ToolOutput& output);
  bool to_be_cancelled(Entry& entry, size_t task);  // `cancel` runs, or has to be run before the task can be ended
  void end(Running& running, State state);
  void stop(Running& running, const std::string& reason);
  std::string failure(const Running& running, std::string reason);  // counts against its host; gives the reason back
  std::string no_host() const;                                      // why there is none left
  Result<Tool> tool(const std::vector<std::string>& words, const Entry& entry, size_t task);
  std::string script_of(const Job& job, size_t task) const;
  std::vector<std::string> filled(const std::vector<std::string>& words, const Job& job, size_t task,
                                  const Running& running) const;

  CommandOptions options_;
  std::filesystem::path folder_;
  Hosts hosts_;
  std::mutex mutex_;  // of all that follows; held for moments only
  std::condition_variable wake_;
  bool closing_ = false;
  std::map<uint64_t, Entry> jobs_;
  uint64_t last_id_ = 0;
  size_t tools_ = 0;  // questions and orders that run
  std::string last_failure_;
  std::thread thread_;
};

}  // namespace assay::launchers
