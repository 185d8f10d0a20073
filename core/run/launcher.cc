#include "core/run/launcher.h"

#include <fmt/format.h>

#include <utility>

#include "assay/sdk.hpp"

namespace assay::run {

Result<Launcher> Launcher::open(const plugin::Plugin& plugin, const std::string& options,
                                const std::filesystem::path& folder, const std::string& run_id) {
  const std::string path = folder.string();
  auto config = sdk::sized<assay_launcher_config>();
  config.options = sdk::view(options);
  config.folder = sdk::view(path);
  config.run = sdk::view(run_id);
  void* handle = nullptr;
  if (Status opened = sdk::call(plugin.launcher()->open, &config, &handle); !opened.ok()) return opened;
  return Launcher(plugin.launcher(), handle);
}

Launcher::Launcher(Launcher&& other) noexcept : table_(other.table_), handle_(std::exchange(other.handle_, nullptr)) {}

Launcher::~Launcher() {
  if (handle_ != nullptr) table_->close(handle_);
}

Result<uint64_t> Launcher::start(const LaunchJob& job) {
  std::vector<std::vector<assay_str>> words;
  std::vector<assay_task> tasks;
  for (const LaunchTask& task : job.tasks) {
    std::vector<assay_str>& argv = words.emplace_back();
    for (const std::string& word : task.argv) argv.push_back(sdk::view(word));
    tasks.push_back({.argv = argv.data(), .argc = argv.size(), .log = sdk::view(task.log)});
  }
  std::vector<std::string> pairs;
  for (const auto& [name, value] : job.environment) pairs.push_back(fmt::format("{}={}", name, value));
  std::vector<assay_str> environment;
  for (const std::string& pair : pairs) environment.push_back(sdk::view(pair));
  auto plain = sdk::sized<assay_job>();
  plain.devices = job.devices;
  plain.name = sdk::view(job.name);
  plain.tasks = tasks.data();
  plain.task_count = tasks.size();
  plain.environment = environment.data();
  plain.environment_count = environment.size();
  plain.seconds = job.seconds;
  plain.memory = job.memory;
  plain.cpus = job.cpus;
  plain.most_at_once = job.most_at_once;
  uint64_t id = 0;
  if (Status started = sdk::call(table_->start, handle_, &plain, &id); !started.ok()) return started;
  return id;
}

Result<std::vector<TaskState>> Launcher::poll(uint64_t job, size_t count) {
  std::vector<assay_task_state> states(count, sdk::sized<assay_task_state>());
  if (Status polled = sdk::call(table_->poll, handle_, job, states.data(), count); !polled.ok()) return polled;
  std::vector<TaskState> made;
  for (const assay_task_state& state : states) {
    if (state.phase < ASSAY_TASK_WAITING || state.phase > ASSAY_TASK_LOST) {
      return internal(fmt::format("launcher: phase {} of a task, expected {} to {}; fix the plugin", state.phase,
                                  static_cast<int>(ASSAY_TASK_WAITING), static_cast<int>(ASSAY_TASK_LOST)));
    }
    made.push_back({.phase = static_cast<assay_task_phase>(state.phase),
                    .exit_code = state.exit_code,
                    .signal = state.signal,
                    .restarts = state.restarts,
                    .again = state.again != 0,
                    .where = std::string(sdk::text(state.where)),
                    .reason = std::string(sdk::text(state.reason))});
  }
  return made;
}

Status Launcher::cancel(uint64_t job) { return sdk::call(table_->cancel, handle_, job, int64_t{-1}); }

Status Launcher::cancel(uint64_t job, size_t task) {
  return sdk::call(table_->cancel, handle_, job, static_cast<int64_t>(task));
}

}  // namespace assay::run
