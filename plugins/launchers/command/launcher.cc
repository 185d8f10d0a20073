#include "plugins/launchers/command/launcher.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <sstream>
#include <utility>

#include "assay/sdk.hpp"
#include "plugins/launchers/common/tool.h"

namespace assay::launchers {
namespace {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::milliseconds;

constexpr Milliseconds kTick{20};
constexpr Milliseconds kPollInterval{2000};  // between two runs of `poll` for one task

Milliseconds milliseconds(double seconds) { return Milliseconds(static_cast<int64_t>(seconds * 1000)); }

std::string contents(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

// The last line that says something, cut to a size fit for a message.
std::string last_line(const std::string& text) {
  constexpr size_t kMost = 300;
  std::istringstream lines(text);
  std::string last;
  for (std::string line; std::getline(lines, line);) {
    if (line.find_first_not_of(" \t\r") != std::string::npos) last = line;
  }
  for (char& c : last) c = static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  return last.substr(0, kMost);
}

}  // namespace

Result<std::unique_ptr<CommandLauncher>> CommandLauncher::open(const assay_launcher_config& config) {
  Result<CommandOptions> options = parse_command_options(sdk::text(config.options));
  if (!options) return options.status();
  return std::unique_ptr<CommandLauncher>(new CommandLauncher(*std::move(options), sdk::text(config.folder)));
}

CommandLauncher::CommandLauncher(CommandOptions options, std::filesystem::path folder)
    : options_(std::move(options)), folder_(std::move(folder)), hosts_(options_) {
  thread_ = std::thread([this] { work(); });
}

CommandLauncher::~CommandLauncher() {
  {
    const std::lock_guard lock(mutex_);
    for (auto& [id, entry] : jobs_) {
      for (size_t i = 0; i < entry.tasks.size(); ++i) stop(entry, i);
    }
    stopped_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

std::string CommandLauncher::script_of(const Job& job, size_t task) const {
  return (folder_ / (job.name + "." + std::to_string(task) + ".sh")).string();
}

Result<uint64_t> CommandLauncher::start(Job job) {
  for (size_t i = 0; i < job.tasks.size(); ++i) {
    const Task& task = job.tasks[i];
    const std::string text = "#!/bin/sh\n" + export_lines(job) + "exec " + shell_quoted(task.argv) + " >>" +
                             shell_quoted(task.log) + " 2>&1 </dev/null\n";
    if (Status written = write_script(script_of(job, i), text); !written.ok()) return written;
  }
  const std::lock_guard lock(mutex_);
  if (hosts_.none_left()) return infra("launcher command: every host failed too often; see the option hosts");
  Entry& entry = jobs_[++last_id_];
  entry.tasks.resize(job.tasks.size());
  entry.job = std::move(job);
  wake_.notify_all();
  return last_id_;
}

Result<std::vector<State>> CommandLauncher::poll(uint64_t id) {
  const std::lock_guard lock(mutex_);
  const auto found = jobs_.find(id);
  if (found == jobs_.end()) return not_found("launcher command: no job " + std::to_string(id) + " of this run");
  std::vector<State> states;
  for (const Running& running : found->second.tasks) states.push_back(running.state);
  return states;
}

Status CommandLauncher::cancel(uint64_t id, std::optional<size_t> task) {
  const std::lock_guard lock(mutex_);
  const auto found = jobs_.find(id);
  if (found == jobs_.end()) return not_found("launcher command: no job " + std::to_string(id) + " of this run");
  for (size_t i = 0; i < found->second.tasks.size(); ++i) {
    if (!task || *task == i) stop(found->second, i);
  }
  wake_.notify_all();
  return {};
}

void CommandLauncher::work() {
  std::unique_lock lock(mutex_);
  while (!stopped_) {
    for (auto& [id, entry] : jobs_) {
      size_t running = 0;
      for (size_t i = 0; i < entry.tasks.size(); ++i) {
        look_after(entry, i);
        running += entry.tasks[i].state.phase == ASSAY_TASK_RUNNING ? 1 : 0;
      }
      for (size_t i = 0; i < entry.tasks.size(); ++i) {
        Running& task = entry.tasks[i];
        if (task.state.phase != ASSAY_TASK_WAITING) continue;
        if (hosts_.none_left()) {
          task.state = lost("every host failed " + std::to_string(options_.host_failures) + " times in a row", false);
          continue;
        }
        if (entry.job.most_at_once > 0 && running >= entry.job.most_at_once) break;
        task.host = hosts_.take();
        if (!task.host) break;
        begin(entry, i);
        ++running;
      }
    }
    wake_.wait_for(lock, kTick);
  }
  jobs_.clear();  // here, in the thread that started them
}

TemplateValues CommandLauncher::values(const Job& job, size_t task, const Running& running) const {
  std::vector<std::string> environment;
  for (const auto& [name, value] : job.environment) environment.push_back(name + "=" + value);
  const auto whole = [](double value) { return std::to_string(static_cast<uint64_t>(std::ceil(value))); };
  return {{"argv", job.tasks[task].argv},
          {"command", {shell_quoted(job.tasks[task].argv)}},
          {"cpus", {std::to_string(std::max(job.cpus, 1u))}},
          {"devices", {std::to_string(job.devices)}},
          {"environment", environment},
          {"folder", {folder_.string()}},
          {"host", {running.host ? hosts_.name(*running.host) : ""}},
          {"id", {running.id}},
          {"index", {std::to_string(task)}},
          {"log", {job.tasks[task].log}},
          {"memory", {std::to_string(job.memory)}},
          {"name", {job.name}},
          {"script", {script_of(job, task)}},
          {"seconds", {whole(job.seconds)}}};
}

void CommandLauncher::begin(Entry& entry, size_t task) {
  Running& running = entry.tasks[task];
  const Job& job = entry.job;
  const std::string base = (folder_ / (job.name + "." + std::to_string(task))).string();
  running.output = base + (options_.poll.empty() ? ".log" : ".id");
  running.errors = base + ".log";
  running.state.where = hosts_.name(*running.host);
  command::CommandOptions options;
  options.argv = expand_template(options_.start, values(job, task, running));
  options.environment = own_environment();
  for (const auto& [name, value] : job.environment) options.environment[name] = value;
  options.output = running.output;
  options.errors = running.errors;
  if (!options_.poll.empty()) {
    options.time_limit = milliseconds(options_.command_seconds);
  } else if (job.seconds > 0) {
    options.time_limit = milliseconds(job.seconds);
  }
  running.deadline = job.seconds > 0 ? Clock::now() + milliseconds(job.seconds) : Clock::time_point::max();
  Result<command::Command> process = command::Command::start(std::move(options));
  if (!process) return end(running, lost(process.status().message(), false));
  running.process.emplace(*std::move(process));
  running.state.phase = ASSAY_TASK_RUNNING;
}

void CommandLauncher::end(Running& running, State state) {
  state.where = running.state.where;
  running.state = std::move(state);
  running.process.reset();
  if (running.host) hosts_.give_back(*running.host);
  running.host.reset();
}

void CommandLauncher::look_after(Entry& entry, size_t task) {
  Running& running = entry.tasks[task];
  if (running.state.phase != ASSAY_TASK_RUNNING) return;
  if (running.process) {
    const std::optional<command::CommandEnd> end = running.process->poll();
    if (!end) return;
    return options_.poll.empty() ? ended(running, *end) : started(entry, task, *end);
  }
  if (Clock::now() < running.next_poll) return;
  if (Clock::now() > running.deadline) {
    stop(entry, task);
    return end(running, lost("time limit of the task", false));
  }
  ask(entry, task);
  running.next_poll = Clock::now() + kPollInterval;
}

// The process that stands for the task is over.
void CommandLauncher::ended(Running& running, const command::CommandEnd& how) {
  if (running.cancelled) return end(running, lost("cancelled", false));
  if (how.limit != command::Limit::kNone) return end(running, lost(how.text(), false));
  const std::vector<int>& codes = options_.lost_codes;
  if (how.signal == 0 && std::find(codes.begin(), codes.end(), how.code) != codes.end()) {
    hosts_.failed(*running.host);
    const std::string said = last_line(contents(running.errors));
    return end(running,
               lost("the command that runs it failed: " + how.text() + (said.empty() ? "" : ": " + said), true));
  }
  hosts_.worked(*running.host);
  State state = exited_in_shell(how.code);
  if (how.signal != 0) {
    state.exit_code = 0;
    state.signal = how.signal;
  }
  end(running, std::move(state));
}

// `start` is over and should have told the task's id.
void CommandLauncher::started(Entry& entry, size_t task, const command::CommandEnd& how) {
  Running& running = entry.tasks[task];
  running.id = last_line(contents(running.output));
  running.process.reset();
  if (!how.ok() || running.id.empty()) {
    hosts_.failed(*running.host);
    const std::string said = last_line(contents(running.errors));
    const std::string why = how.ok() ? "it printed no id" : how.text() + (said.empty() ? "" : ": " + said);
    return end(running, lost("start failed: " + why, how.ok() || how.limit == command::Limit::kNone));
  }
  hosts_.worked(*running.host);
  running.next_poll = Clock::now() + kPollInterval;
  if (running.cancelled) {
    running.cancelled = false;
    stop(entry, task);
  }
}

// Asks `poll`, whose last line is one of: waiting, running, exited CODE, lost REASON.
void CommandLauncher::ask(Entry& entry, size_t task) {
  Running& running = entry.tasks[task];
  const Result<ToolOutput> output = run_tool(expand_template(options_.poll, values(entry.job, task, running)),
                                             milliseconds(options_.command_seconds), folder_);
  if (!output || !output->ok()) {
    running.state.reason = "poll: " + (output ? output->words() : output.status().message());
    return;  // asked again; the time limit ends it
  }
  std::istringstream line(last_line(output->out));
  std::string word;
  line >> word;
  if (word == "exited") {
    int code = 0;
    line >> code;
    return end(running, exited_in_shell(code));
  }
  if (word == "lost") {
    std::string reason;
    std::getline(line >> std::ws, reason);
    return end(running, lost(reason.empty() ? "lost" : reason, true));
  }
  running.state.reason = word == "waiting" || word == "running" ? "" : "poll said '" + word + "'";
}

void CommandLauncher::stop(Entry& entry, size_t task) {
  Running& running = entry.tasks[task];
  if (running.state.over() || running.cancelled) return;
  running.cancelled = true;
  if (running.state.phase == ASSAY_TASK_WAITING) return end(running, lost("cancelled before it started", false));
  const bool starting = running.process && !options_.poll.empty();  // then started() cancels it
  if (!options_.cancel.empty() && !starting) {
    const Result<ToolOutput> output = run_tool(expand_template(options_.cancel, values(entry.job, task, running)),
                                               milliseconds(options_.command_seconds), folder_);
    if (!output || !output->ok()) {
      running.state.reason = "cancel: " + (output ? output->words() : output.status().message());
    }
  }
  if (running.process) {
    if (!starting) running.process->stop();
  } else {
    end(running, lost("cancelled", false));
  }
}

}  // namespace assay::launchers
