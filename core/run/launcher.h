// A launcher plugin, from the runner's side: assay_launcher_table over C++ types.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "assay/status.h"
#include "core/plugin/plugin.h"

namespace assay::run {

struct LaunchTask {
  std::vector<std::string> argv;
  std::string log;
};

// See assay_job.
struct LaunchJob {
  std::string name;
  std::vector<LaunchTask> tasks;
  std::map<std::string, std::string> environment;
  uint32_t devices = 0;
  double seconds = 0;
  uint64_t memory = 0;
  uint32_t cpus = 0;
  uint32_t most_at_once = 0;
};

// See assay_task_state.
struct TaskState {
  assay_task_phase phase = ASSAY_TASK_WAITING;
  int exit_code = 0;
  int signal = 0;
  int restarts = 0;
  bool again = false;
  std::string where;
  std::string reason;
};

// Not thread-safe. Destroying it cancels what is left.
class Launcher {
 public:
  // `folder` exists; `options` is a JSON object. Fails with what the plugin says.
  static Result<Launcher> open(const plugin::Plugin& plugin, const std::string& options,
                               const std::filesystem::path& folder, const std::string& run_id);
  Launcher(Launcher&& other) noexcept;
  Launcher& operator=(Launcher&&) = delete;
  ~Launcher();

  // The job's id. kExhausted: not now. Anything else: the job is refused.
  Result<uint64_t> start(const LaunchJob& job);

  // One state for each of the `count` tasks of the job. Fails where the system cannot be asked just now; kExhausted:
  // all tasks that it has taken are over, and it cannot take the others just now.
  Result<std::vector<TaskState>> poll(uint64_t job, size_t count);

  Status cancel(uint64_t job);               // the whole of it
  Status cancel(uint64_t job, size_t task);  // one task

 private:
  Launcher(const assay_launcher_table* table, void* handle) : table_(table), handle_(handle) {}

  const assay_launcher_table* table_;
  void* handle_;
};

}  // namespace assay::run
