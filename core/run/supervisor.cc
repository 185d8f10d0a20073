#include "core/run/supervisor.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "core/command/log_tail.h"
#include "core/run/events.h"
#include "core/run/repeats.h"
#include "core/run/secrets.h"
#include "core/run/worker_plan.h"

namespace assay::run {
namespace {

using Json = nlohmann::ordered_json;
using Milliseconds = std::chrono::milliseconds;

constexpr int kPollMilliseconds = 5;
constexpr Milliseconds kMemoryInterval{20};
constexpr int kLoadAttempts = 2;

double seconds(Milliseconds value) { return static_cast<double>(value.count()) / 1000; }

}  // namespace

Supervisor::Supervisor(const RunOptions& options, const Plan& plan, Recorder& recorder)
    : options_(options), plan_(plan), recorder_(recorder), memory_limit_(options.memory_limit) {
  started_ = plan.first_worker;
  if (memory_limit_ == 0) memory_limit_ = machine_memory() / 10 * 9;
  for (size_t i = 0; i < plan.cases.size(); ++i) by_id_.emplace(plan.cases[i].order.id, i);
  for (size_t g = 0; g < plan.groups.size(); ++g) {
    queue_.push_back({g, {plan.groups[g].cases.begin(), plan.groups[g].cases.end()}, 0, 0});
    const DeviceUse& use = plan.groups[g].device;
    if (!use.variable.empty()) slots_.try_emplace(use.variable, use.devices.size());
  }
}

void Supervisor::run() {
  while (!queue_.empty() || !active_.empty()) {
    if (!cancelled_ && options_.cancel != nullptr && options_.cancel->load()) {
      cancelled_ = true;
      for (const Work& work : queue_) give_up(work.cases, Verdict::kInfra, "cancelled before it started");
      queue_.clear();
      for (const auto& active : active_) condemn(*active, "cancelled");
    }
    while (active_.size() < static_cast<size_t>(std::max(options_.jobs, 1)) && start_one()) {
    }
    std::vector<pid_t> pids;
    for (const auto& active : active_) pids.push_back(active->process.pid());
    if (!pids.empty()) wait_any(pids, kPollMilliseconds);
    for (auto& active : active_) {
      const std::optional<Exit> exit = active->process.poll();  // before reading: what it wrote is then complete
      follow(*active);
      if (exit) {
        give_back_device(*active);
        conclude(*active, *exit);
        active.reset();
      } else {
        enforce(*active);
      }
    }
    std::erase(active_, nullptr);
  }
}

// Starts the first work whose device has room; false when there is none.
bool Supervisor::start_one() {
  for (auto work = queue_.begin(); work != queue_.end(); ++work) {
    bool has_to_wait = false;
    const std::optional<size_t> device = take_device(plan_.groups[work->group].device, &has_to_wait);
    if (has_to_wait) continue;
    Work taken = std::move(*work);
    queue_.erase(work);
    start(std::move(taken), device);
    return true;
  }
  return false;
}

std::optional<size_t> Supervisor::take_device(const DeviceUse& use, bool* has_to_wait) {
  if (use.variable.empty()) return std::nullopt;
  const std::optional<size_t> device = slots_.at(use.variable).take(use.workers);
  *has_to_wait = !device;
  return device;
}

void Supervisor::give_back_device(const Active& active) {
  const DeviceUse& use = plan_.groups[active.work.group].device;
  if (active.device) slots_.at(use.variable).give_back(*active.device, use.workers);
}

void Supervisor::start(Work work, std::optional<size_t> device) {
  const Group& group = plan_.groups[work.group];
  const std::string id = fmt::format("w{:03}", started_++);
  const std::filesystem::path base = options_.output / "workers" / id;
  WorkerPlan plan = group.head;
  plan.worker = id;
  if (device) plan.device = group.device.variable + "=" + group.device.devices[*device];
  for (const size_t index : work.cases) {
    plan.cases.push_back(plan_.cases[index].order);
    plan.cases.back().first_repeat = recorder_.next_repeat(index);
  }
  std::map<std::string, std::string> environment = group.environment;
  if (device) environment[group.device.variable] = group.device.devices[*device];
  const auto refuse = [&](const std::string& reason) {
    if (device) slots_.at(group.device.variable).give_back(*device, group.device.workers);
    give_up(work.cases, Verdict::kInfra, reason);
  };
  const std::string plan_file = base.string() + ".plan.json";
  const std::string event_file = base.string() + ".events.jsonl";
  const std::string log = base.string() + ".log";
  const HiddenSecrets hidden = hide_secrets(recorder_.redactor(), to_json(plan));
  if (!hidden.secrets.empty()) environment[kSecretsVariable] = hidden.secrets;
  if (Status written = write_file(plan_file, hidden.text); !written.ok()) {
    return refuse(written.message());
  }
  Result<Process> process = Process::spawn(
      {.argv = {options_.worker.string(), plan_file, event_file}, .environment = environment, .log = log});
  if (!process) return refuse("worker: " + process.status().message());
  active_.push_back(std::make_unique<Active>(Active{.work = std::move(work),
                                                    .device = device,
                                                    .id = id,
                                                    .log = log,
                                                    .process = *std::move(process),
                                                    .reader = EventReader(event_file),
                                                    .deadline = Clock::now() + options_.load_timeout,
                                                    .loaded = false,
                                                    .progressed = false,
                                                    .running = std::nullopt,
                                                    .judging = false,
                                                    .last_request = "",
                                                    .last_way = "",
                                                    .condemned = std::nullopt,
                                                    .next_memory_check = Clock::now()}));
}

void Supervisor::follow(Active& active) {
  for (const std::string& line : active.reader.poll()) {
    try {
      handle(active, line);
    } catch (const Json::exception&) {
      // A member of an unexpected type: whoever wrote it, it is no event of ours. The case ends when its worker does.
    }
  }
}

void Supervisor::handle(Active& active, const std::string& line) {
  const Json event = recorder_.note_line(line);
  if (event.is_null()) return;
  const std::string name = event["event"];
  if (name == event::kLoadFinished || name == event::kLoadFailed) {
    active.loaded = true;
    active.deadline = Clock::now() + options_.load_timeout;
    return;
  }
  if (name == event::kRequestFinished || name == event::kRequestFailed) {
    active.last_request = event.value("request", "");
    active.last_way = event.value("way", "");
    return;
  }
  if (name == event::kJudgingStarted) {
    active.judging = true;
    return;
  }
  if (name == event::kDigestStarted) {  // not the engine's time
    active.deadline = std::max(active.deadline, Clock::now() + options_.load_timeout);
    return;
  }
  if (name != event::kCaseStarted && name != event::kCaseFinished && name != event::kRepeatStarted &&
      name != event::kRepeatFinished) {
    return;
  }
  const auto found = by_id_.find(event.value("case", ""));
  if (found == by_id_.end()) return;
  const size_t index = found->second;
  if (name == event::kRepeatFinished) return recorder_.finish_repeat(index, event);
  if (name != event::kCaseFinished) {
    active.running = index;
    active.judging = false;
    active.last_request.clear();
    active.deadline = Clock::now() + plan_.cases[index].timeout;
    return;
  }
  recorder_.finish(index, event);
  std::erase(active.work.cases, index);
  active.running.reset();
  active.progressed = true;
  active.deadline = Clock::now() + options_.load_timeout;
}

void Supervisor::enforce(Active& active) {
  const Clock::time_point now = Clock::now();
  if (active.condemned) {
    if (!active.condemned->killed && now >= active.condemned->kill_at) {
      active.process.signal_group(SIGKILL);
      active.condemned->killed = true;
    }
    return;
  }
  if (now >= active.deadline) {
    if (active.running) {
      return condemn(active, fmt::format("no verdict after {:.1f} s: hung, or in need of a larger ASSAY.timeout",
                                         seconds(plan_.cases[*active.running].timeout)));
    }
    return condemn(active,
                   fmt::format("{} not over after {:.1f} s", active.loaded ? "the way to the next case" : "load",
                               seconds(options_.load_timeout)));
  }
  if (now < active.next_memory_check) return;
  active.next_memory_check = now + kMemoryInterval;
  const uint64_t used = active.process.anonymous_bytes();
  const uint64_t own = active.running ? plan_.cases[*active.running].memory_limit : 0;
  const uint64_t limit = own > 0 ? own : memory_limit_;
  if (used > limit) {
    condemn(active, fmt::format("memory: {:.2f} GB of anonymous memory, the limit is {:.2f} GB",
                                static_cast<double>(used) / 1e9, static_cast<double>(limit) / 1e9));
    active.process.signal_group(SIGKILL);  // waiting would let it grow
    active.condemned->killed = true;
  }
}

void Supervisor::condemn(Active& active, std::string reason) {
  if (active.condemned) return;
  active.condemned = Condemned{std::move(reason), Clock::now() + options_.kill_grace, false};
  active.process.signal_group(SIGTERM);
}

void Supervisor::conclude(Active& active, const Exit& exit) {
  Work rest = std::move(active.work);
  const bool clean = exit.signal == 0 && exit.code == 0 && !active.condemned;
  if (clean && rest.cases.empty()) return;
  const std::string death = active.condemned ? active.condemned->reason : exit.text();
  const std::string tail = tail_of_log(active);
  ++crashes_;
  Json event = make_event(event::kWorkerCrashed);
  event["worker"] = active.id;
  event["group"] = rest.group;
  event["death"] = death;
  event["case"] = active.running ? plan_.cases[*active.running].order.id : "";
  event["request"] = active.last_request;
  event["message"] = fmt::format("{}: {}{}{}", active.id, death,
                                 active.running ? " in case " + plan_.cases[*active.running].outcome.name : "", tail);
  recorder_.note(event);
  if (active.running) remove_leftovers(*active.running);
  if (cancelled_) {
    if (active.running) {
      recorder_.finish(*active.running, CaseVerdict{Verdict::kInfra, "cancelled while it ran", "", {}},
                       log_of_case(*active.running));
    }
    return give_up(rest.cases, Verdict::kInfra, "cancelled before it started");
  }
  if (active.running) {
    const std::string last = active.judging ? "all requests were over, its results were being judged"
                             : active.last_request.empty()
                                 ? "no request had finished"
                                 : "last finished request: " + active.last_request +
                                       (active.last_way.empty() ? "" : " (" + active.last_way + ")");
    const bool again = recorder_.died(
        *active.running, CaseVerdict{Verdict::kCrashed, fmt::format("{}; {}{}", death, last, tail), "", {}},
        log_of_case(*active.running));
    if (!again) std::erase(rest.cases, *active.running);
    rest.failed_loads = rest.idle_deaths = 0;
  } else if (!active.loaded) {
    ++rest.failed_loads;
    if (rest.failed_loads >= kLoadAttempts || active.condemned) {
      return give_up(
          rest.cases, Verdict::kInfra,
          fmt::format("worker died while it started or loaded, {} time(s): {}{}", rest.failed_loads, death, tail));
    }
  } else {
    rest.idle_deaths = active.progressed ? 1 : rest.idle_deaths + 1;
    if (rest.idle_deaths >= kLoadAttempts) {
      return give_up(rest.cases, Verdict::kInfra,
                     fmt::format("worker died between cases, {} times: {}{}", rest.idle_deaths, death, tail));
    }
  }
  if (!rest.cases.empty()) queue_.push_front(std::move(rest));
}

void Supervisor::give_up(const std::deque<size_t>& cases, Verdict verdict, const std::string& reason) {
  for (const size_t index : cases) recorder_.finish(index, CaseVerdict{verdict, reason, "", {}});
}

void Supervisor::remove_leftovers(size_t index) const {
  std::error_code code;  // what cannot be removed stays, and costs nothing but room
  std::filesystem::remove_all(
      folder_of_repeat(options_.output, plan_.cases[index].order.id, recorder_.next_repeat(index)) / kResavedFolder,
      code);
}

std::string Supervisor::log_of_case(size_t index) const {
  const std::filesystem::path log =
      folder_of_repeat(options_.output, plan_.cases[index].order.id, recorder_.next_repeat(index)) / "engine.log";
  return std::filesystem::exists(log) ? log.string() : "";
}

std::string Supervisor::tail_of_log(const Active& active) const {
  const std::string own = active.running ? log_of_case(*active.running) : "";
  const std::string lines = command::last_lines(own.empty() ? active.log : std::filesystem::path(own));
  return lines.empty() ? "" : fmt::format("; last output: {}", lines);
}

}  // namespace assay::run
