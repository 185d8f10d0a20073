#include "plugins/launchers/command/launcher.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <iterator>
#include <sstream>
#include <system_error>
#include <utility>

#include "assay/sdk.hpp"
#include "core/command/environment.h"
#include "core/command/log_tail.h"
#include "core/command/redact.h"
#include "plugins/engines/common/template_words.h"

namespace assay::launchers {
namespace {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::milliseconds;

constexpr Milliseconds kTick{20};
constexpr Milliseconds kPollInterval{2000};  // between two runs of `poll` for one task
constexpr size_t kMostTools = 16;            // runs of `poll` and `cancel` at one time
constexpr size_t kSaid = 300;                // bytes of a command's errors in a message

Milliseconds milliseconds(double seconds) { return Milliseconds(static_cast<int64_t>(seconds * 1000)); }

std::string contents(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

// The last line that says something: an answer of a command.
std::string last_line(const std::string& text) {
  std::istringstream lines(text);
  std::string last;
  for (std::string line; std::getline(lines, line);) {
    if (line.find_first_not_of(" \t\r") != std::string::npos) last = line;
  }
  for (char& c : last) c = static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  return last.substr(0, kSaid);
}

// The end of what a command complained of, without secrets.
std::string said_in(const std::string& file, const Job& job) {
  command::Redactor redactor(command::own_environment());
  for (const auto& [name, value] : job.environment) redactor.add(name, value);
  return command::last_lines(file, redactor, 1, kSaid);
}

// How a command ended, with what it complained of.
std::string told(const command::CommandEnd& how, const std::string& file, const Job& job) {
  const std::string said = said_in(file, job);
  return how.text() + (said.empty() ? "" : ": " + said);
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
      for (Running& running : entry.tasks) stop(running, "cancelled");
    }
    closing_ = true;
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
  if (hosts_.none_left()) return infra(no_host());
  Entry& entry = jobs_[++last_id_];
  entry.tasks.resize(job.tasks.size());
  entry.job = std::move(job);
  wake_.notify_all();
  return last_id_;
}

Result<std::vector<State>> CommandLauncher::poll(uint64_t id) {
  const std::lock_guard lock(mutex_);
  const auto found = jobs_.find(id);
  if (found == jobs_.end()) return not_found("no job " + std::to_string(id) + " of this run");
  std::vector<State> states;
  for (const Running& running : found->second.tasks) {
    states.push_back(running.state);
    if (running.queued && running.state.phase == ASSAY_TASK_RUNNING) states.back().phase = ASSAY_TASK_WAITING;
  }
  return states;
}

Status CommandLauncher::cancel(uint64_t id, std::optional<size_t> task) {
  const std::lock_guard lock(mutex_);
  const auto found = jobs_.find(id);
  if (found == jobs_.end()) return not_found("no job " + std::to_string(id) + " of this run");
  for (size_t i = 0; i < found->second.tasks.size(); ++i) {
    if (!task || *task == i) stop(found->second.tasks[i], "cancelled");
  }
  wake_.notify_all();
  return {};
}

void CommandLauncher::work() {
  std::unique_lock lock(mutex_);
  while (!closing_ || busy()) {
    for (auto& [id, entry] : jobs_) {
      for (size_t i = 0; i < entry.tasks.size(); ++i) look_after(entry, i);
      begin_waiting(entry);
    }
    ask_the_next();
    wake_.wait_for(lock, kTick);
  }
  jobs_.clear();  // here, in the thread that started them
}

bool CommandLauncher::busy() const {
  for (const auto& [id, entry] : jobs_) {
    for (const Running& running : entry.tasks) {
      if (running.state.phase == ASSAY_TASK_RUNNING || running.order) return true;
    }
  }
  return false;
}

void CommandLauncher::begin_waiting(Entry& entry) {
  const auto runs = [](const Running& task) { return task.state.phase == ASSAY_TASK_RUNNING; };
  auto running = static_cast<uint64_t>(std::count_if(entry.tasks.begin(), entry.tasks.end(), runs));
  for (size_t i = 0; i < entry.tasks.size(); ++i) {
    Running& task = entry.tasks[i];
    if (task.state.phase != ASSAY_TASK_WAITING) continue;
    if (hosts_.none_left()) {
      task.state = lost(no_host(), false);
      continue;
    }
    if (entry.job.most_at_once > 0 && running >= entry.job.most_at_once) return;
    task.host = hosts_.take(Clock::now());
    if (!task.host) return;
    begin(entry, i);
    running += runs(task) ? 1 : 0;
  }
}

std::vector<std::string> CommandLauncher::filled(const std::vector<std::string>& words, const Job& job, size_t task,
                                                 const Running& running) const {
  engines::TemplateVariables all;
  const auto set = [&all](const char* name, std::vector<std::string> value) {
    all[name] = {.words = std::move(value), .several = true, .joined = true};
  };
  std::vector<std::string> environment;
  for (const auto& [name, value] : job.environment) environment.push_back(name + "=" + value);
  set("argv", job.tasks[task].argv);
  set("command", {shell_quoted(job.tasks[task].argv)});
  set("cpus", {std::to_string(std::max(job.cpus, 1u))});
  set("devices", {std::to_string(job.devices)});
  set("environment", std::move(environment));
  set("folder", {folder_.string()});
  set("host", {running.host ? hosts_.name(*running.host) : ""});
  set("id", {running.id});
  set("index", {std::to_string(task)});
  set("log", {job.tasks[task].log});
  set("memory", {std::to_string(job.memory)});
  set("name", {job.name});
  set("script", {script_of(job, task)});
  set("seconds", {std::to_string(static_cast<uint64_t>(std::ceil(job.seconds)))});
  return *engines::fill_in(words, all, "launcher command");  // the options were checked
}

Result<Tool> CommandLauncher::tool(const std::vector<std::string>& words, const Entry& entry, size_t task) {
  Result<Tool> started =
      Tool::start(filled(words, entry.job, task, entry.tasks[task]), milliseconds(options_.command_seconds), folder_);
  if (started) ++tools_;
  return started;
}

void CommandLauncher::begin(Entry& entry, size_t task) {
  Running& running = entry.tasks[task];
  const Job& job = entry.job;
  const std::string base = (folder_ / (job.name + "." + std::to_string(task))).string();
  running.output = base + (options_.poll.empty() ? ".log" : ".id");
  running.errors = base + ".log";
  running.state.where = hosts_.name(*running.host);
  command::CommandOptions options;
  options.argv = filled(options_.start, job, task, running);
  options.environment = command::own_environment();
  for (const auto& [name, value] : job.environment) options.environment[name] = value;
  options.output = running.output;
  options.errors = running.errors;
  if (!options_.poll.empty()) options.time_limit = milliseconds(options_.command_seconds);
  running.begun_at = Clock::now();
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
  if (running.order) {
    if (const std::optional<ToolOutput> output = running.order->poll()) {
      if (!output->ok()) running.ending += "; the command cancel failed: " + output->words();
      running.order.reset();
      --tools_;
    }
  }
  if (running.state.phase != ASSAY_TASK_RUNNING) return;
  if (Clock::now() > running.deadline && (options_.poll.empty() || !running.process)) {
    stop(running, "time limit of " + std::to_string(std::llround(entry.job.seconds)) + " s reached");
  }
  if (running.process) {
    if (const std::optional<command::CommandEnd> how = running.process->poll()) {
      return options_.poll.empty() ? ended(entry, task, *how) : started(entry, task, *how);
    }
    const bool starting = !options_.poll.empty();  // only its end tells what there is to cancel
    if (!running.ending.empty() && !starting && !to_be_cancelled(entry, task)) running.process->stop();
    return;
  }
  if (running.question) {
    std::optional<ToolOutput> output = running.question->poll();
    if (!output && running.ending.empty()) return;
    running.question.reset();
    --tools_;
    if (output && running.ending.empty()) answered(running, entry.job, *output);
  }
  if (running.state.phase == ASSAY_TASK_RUNNING && !running.ending.empty() && !to_be_cancelled(entry, task)) {
    end(running, lost(running.ending, running.again));
  }
}

bool CommandLauncher::to_be_cancelled(Entry& entry, size_t task) {
  Running& running = entry.tasks[task];
  if (running.order) return true;
  if (running.ordered || options_.cancel.empty()) return false;
  if (tools_ >= kMostTools) return true;
  running.ordered = true;
  Result<Tool> order = tool(options_.cancel, entry, task);
  if (!order) running.ending += "; the command cancel failed: " + order.status().message();
  if (order) running.order.emplace(*std::move(order));
  return running.order.has_value();
}

std::string CommandLauncher::failure(const Running& running, std::string reason) {
  hosts_.failed(*running.host, running.begun_at, Clock::now());
  const std::string& name = hosts_.name(*running.host);
  last_failure_ = (name.empty() ? "" : name + ": ") + reason;
  return reason;
}

std::string CommandLauncher::no_host() const {
  return "every host failed " + std::to_string(options_.host_failures) + " times in a row (host_failures), at last " +
         last_failure_;
}

// The process that stands for the task is over.
void CommandLauncher::ended(Entry& entry, size_t task, const command::CommandEnd& how) {
  Running& running = entry.tasks[task];
  if (!running.ending.empty()) return end(running, lost(running.ending, false));
  if (how.limit != command::Limit::kNone) return end(running, lost(how.text(), false));
  const std::vector<int>& codes = options_.lost_codes;
  if (how.signal == 0 && std::find(codes.begin(), codes.end(), how.code) != codes.end()) {
    // `cancel`, where there is one, is run before it counts as lost: the far end may go on.
    stop(running, failure(running, "the command that runs it failed: " + told(how, running.errors, entry.job)));
    running.again = true;
    running.process.reset();
    return;
  }
  hosts_.worked(*running.host);
  State state = exited_in_shell(how.code);
  if (how.code != 0 || how.signal != 0) state.reason = said_in(running.errors, entry.job);
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
  if (how.ok() && !running.id.empty()) {
    hosts_.worked(*running.host);
    running.next_poll = Clock::now() + kPollInterval;
    return;
  }
  const std::string why =
      failure(running, "start failed: " + (how.ok() ? "it printed no id" : told(how, running.errors, entry.job)));
  const bool by_itself = how.limit == command::Limit::kNone;
  if (by_itself || running.id.empty()) return end(running, lost(why, by_itself));
  stop(running, why);  // it told an id before its time was over: something may run there
}

// Runs `poll` for those that were not asked for longest.
void CommandLauncher::ask_the_next() {
  struct Due {
    Clock::time_point since;
    Entry* entry;
    size_t task;
  };
  std::vector<Due> due;
  for (auto& [id, entry] : jobs_) {
    for (size_t i = 0; i < entry.tasks.size(); ++i) {
      const Running& running = entry.tasks[i];
      const bool has_id = running.state.phase == ASSAY_TASK_RUNNING && !running.process;
      if (!has_id || running.question || !running.ending.empty() || Clock::now() < running.next_poll) continue;
      due.push_back({running.next_poll, &entry, i});
    }
  }
  std::sort(due.begin(), due.end(), [](const Due& a, const Due& b) { return a.since < b.since; });
  for (const Due& one : due) {
    if (tools_ >= kMostTools) return;
    Running& running = one.entry->tasks[one.task];
    running.next_poll = Clock::now() + kPollInterval;
    Result<Tool> question = tool(options_.poll, *one.entry, one.task);
    if (question) running.question.emplace(*std::move(question));
    if (!question) running.state.reason = "poll: " + question.status().message();
  }
}

// The last line that `poll` printed is one of: waiting, running, exited CODE, lost REASON.
void CommandLauncher::answered(Running& running, const Job& job, const ToolOutput& output) {
  const auto limit = [&job] {
    return job.seconds > 0 ? Clock::now() + milliseconds(job.seconds) : Clock::time_point::max();
  };
  running.next_poll = Clock::now() + kPollInterval;
  if (!output.ok()) {
    running.state.reason = "poll: " + output.words();
    if (running.queued && running.deadline == Clock::time_point::max()) running.deadline = limit();
    return;  // asked again; the time limit ends it
  }
  std::istringstream line(last_line(output.out));
  std::string word;
  line >> word;
  if (word == "exited") {
    std::string number;
    line >> number;
    int code = 0;
    const char* last = number.data() + number.size();
    const auto [stop, error] = std::from_chars(number.data(), last, code);
    if (error == std::errc() && stop == last) return end(running, exited_in_shell(code));
    running.state.reason = "poll said '" + last_line(output.out) + "', expected exited and a number";
    return;
  }
  if (word == "lost") {
    std::string reason;
    std::getline(line >> std::ws, reason);
    return end(running, lost(reason.empty() ? "lost" : reason, true));
  }
  if (word == "waiting") {
    running.deadline = Clock::time_point::max();
    running.queued = true;
  } else if (word == "running") {
    if (running.queued || !running.begun) running.deadline = limit();  // the time it waited is none of its own
    running.queued = false;
    running.begun = true;
  } else if (running.deadline == Clock::time_point::max()) {
    running.deadline = limit();
  }
  running.state.reason = word == "waiting" || word == "running" ? "" : "poll said '" + word + "'";
}

// Notes that it is to end; look_after() sees to it.
void CommandLauncher::stop(Running& running, const std::string& reason) {
  if (running.state.over() || !running.ending.empty()) return;
  running.ending = reason;
  if (running.state.phase == ASSAY_TASK_WAITING) end(running, lost("cancelled before it started", false));
}

}  // namespace assay::launchers
