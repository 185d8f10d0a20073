// Launcher example_minimal: runs tasks as processes of this machine.
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "assay/sdk.hpp"

extern char** environ;  // NOLINT: POSIX names it

namespace {

using assay::Status;
using namespace assay::sdk;
using Clock = std::chrono::steady_clock;

struct Task {
  std::vector<std::string> argv;
  std::string log;
  uint32_t phase = ASSAY_TASK_WAITING;
  pid_t pid = 0;  // and its process group, while it runs
  int exit_code = 0;
  int signal = 0;
  std::string reason;
  Clock::time_point started;
};

struct Job {
  std::vector<Task> tasks;
  std::vector<std::string> environment;
  double seconds = 0;  // 0: no limit
  size_t most_at_once = 0;
};

struct Launcher {
  std::map<uint64_t, Job> jobs;
  uint64_t next_id = 1;
};

Launcher& of(void* handle) { return *static_cast<Launcher*>(handle); }

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> all;
  for (std::string& word : words) all.push_back(word.data());
  all.push_back(nullptr);
  return all;
}

// The variables of this process, with those of the job over them.
std::vector<std::string> merged_environment(const std::vector<std::string>& over) {
  std::map<std::string, std::string> variables;
  const auto put = [&variables](const std::string& entry) { variables[entry.substr(0, entry.find('='))] = entry; };
  for (char** entry = environ; *entry != nullptr; ++entry) put(*entry);
  for (const std::string& entry : over) put(entry);
  std::vector<std::string> merged;
  for (auto& [name, entry] : variables) merged.push_back(std::move(entry));
  return merged;
}

void lose(Task& task, const std::string& reason) {
  task.phase = ASSAY_TASK_LOST;
  task.reason = reason;
}

void begin(Task& task, const Job& job) {
  std::vector<std::string> environment = merged_environment(job.environment);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, task.log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0666);
  posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);  // a group of its own: children end with it
  const int error = posix_spawn(&task.pid, task.argv[0].c_str(), &files, &attributes, pointers(task.argv).data(),
                                pointers(environment).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  task.started = Clock::now();
  task.phase = ASSAY_TASK_RUNNING;
  if (error != 0) lose(task, task.argv[0] + " cannot be started: " + std::strerror(error));
}

void end(Task& task, const std::string& reason) {
  if (task.phase == ASSAY_TASK_RUNNING) {
    kill(-task.pid, SIGKILL);
    while (waitpid(task.pid, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  if (task.phase == ASSAY_TASK_RUNNING || task.phase == ASSAY_TASK_WAITING) lose(task, reason);
}

// Notes what has ended, ends what runs too long, begins what may run now. Does not wait.
void look_after(Job& job) {
  size_t running = 0;
  for (Task& task : job.tasks) {
    if (task.phase != ASSAY_TASK_RUNNING) continue;
    int status = 0;
    if (waitpid(task.pid, &status, WNOHANG) == task.pid) {
      kill(-task.pid, SIGKILL);  // children that it left behind
      task.phase = ASSAY_TASK_EXITED;
      task.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
      task.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    } else if (job.seconds > 0 && std::chrono::duration<double>(Clock::now() - task.started).count() > job.seconds) {
      end(task, "ran longer than its limit of " + std::to_string(job.seconds) + " s");
    } else {
      ++running;
    }
  }
  for (Task& task : job.tasks) {
    if (task.phase != ASSAY_TASK_WAITING || (job.most_at_once != 0 && running >= job.most_at_once)) continue;
    begin(task, job);
    ++running;
  }
}

assay::Result<Job*> find(void* handle, uint64_t id) {
  const auto found = of(handle).jobs.find(id);
  if (found == of(handle).jobs.end()) return assay::not_found("launcher example_minimal: no job " + std::to_string(id));
  return &found->second;
}

int32_t open(const assay_launcher_config* config, void** launcher, assay_error* error) {
  return guarded(error, [&]() -> Status {
    if (config->options.size != 0 && text(config->options) != "{}") {
      return assay::invalid("options of launcher example_minimal: it has none; leave them out");
    }
    *launcher = new Launcher;
    return {};
  });
}

int32_t start(void* handle, const assay_job* asked, uint64_t* id, assay_error* error) {
  return guarded(error, [&]() -> Status {
    if (asked->devices > 0) return assay::unsupported("launcher example_minimal gives no devices; ask for none");
    if (asked->task_count == 0) return assay::invalid("a job without tasks; expected at least one");
    Job job;
    job.seconds = asked->seconds;
    job.most_at_once = asked->most_at_once;
    for (size_t i = 0; i < asked->environment_count; ++i) job.environment.emplace_back(text(asked->environment[i]));
    for (size_t i = 0; i < asked->task_count; ++i) {
      const assay_task& from = asked->tasks[i];
      if (from.argc == 0) return assay::invalid("task " + std::to_string(i) + " has no words; expected a program");
      Task& task = job.tasks.emplace_back();
      task.log = text(from.log);
      for (size_t word = 0; word < from.argc; ++word) task.argv.emplace_back(text(from.argv[word]));
    }
    Job& kept = of(handle).jobs[of(handle).next_id] = std::move(job);
    *id = of(handle).next_id++;
    look_after(kept);
    return {};
  });
}

int32_t poll(void* handle, uint64_t id, assay_task_state* states, size_t count, assay_error* error) {
  return guarded(error, [&]() -> Status {
    assay::Result<Job*> job = find(handle, id);
    if (!job) return job.status();
    std::vector<Task>& tasks = (*job)->tasks;
    if (count != tasks.size()) {
      return assay::invalid("room for " + std::to_string(count) + " states, expected " + std::to_string(tasks.size()));
    }
    look_after(**job);
    for (size_t i = 0; i < count; ++i) {
      states[i].phase = tasks[i].phase;
      states[i].exit_code = tasks[i].exit_code;
      states[i].signal = tasks[i].signal;
      states[i].restarts = 0;
      states[i].again = 0;
      states[i].where = {};
      states[i].reason = view(tasks[i].reason);
    }
    return {};
  });
}

int32_t cancel(void* handle, uint64_t id, int64_t task, assay_error* error) {
  return guarded(error, [&]() -> Status {
    assay::Result<Job*> job = find(handle, id);
    if (!job) return job.status();
    std::vector<Task>& tasks = (*job)->tasks;
    if (task >= static_cast<int64_t>(tasks.size())) {
      return assay::not_found("no task " + std::to_string(task) + " in a job of " + std::to_string(tasks.size()));
    }
    for (size_t i = 0; i < tasks.size(); ++i) {
      if (task < 0 || static_cast<size_t>(task) == i) end(tasks[i], "cancelled");
    }
    return {};
  });
}

void close(void* handle) {
  for (auto& [id, job] : of(handle).jobs) {
    for (Task& task : job.tasks) end(task, "the launcher was closed");
  }
  delete static_cast<Launcher*>(handle);
}

const assay_launcher_table kTable = {sizeof(assay_launcher_table), 0, open, start, poll, cancel, close};

const assay_plugin kPlugin = {ASSAY_PLUGIN_MAGIC,
                              sizeof(assay_plugin),
                              ASSAY_ABI_MAJOR,
                              ASSAY_ABI_MINOR,
                              ASSAY_LAUNCHER,
                              0,
                              0,
                              "example_minimal",  // the file is launcher_example_minimal.so
                              "1.0.0",
                              "runs tasks as processes of this machine",
                              R"({"type": "object", "additionalProperties": false})",  // its options: none
                              &kTable};

}  // namespace

ASSAY_PLUGIN_EXPORT const assay_plugin* assay_plugin_query(uint32_t abi_major, uint32_t, const assay_host*) {
  return abi_major == ASSAY_ABI_MAJOR ? &kPlugin : nullptr;
}
