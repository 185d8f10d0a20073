#include "core/run/supervisor.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "core/run/worker.h"
#include "core/run/worker_plan.h"

namespace assay::run {
namespace {

using Milliseconds = std::chrono::milliseconds;

constexpr int kPollMilliseconds = 5;
constexpr Milliseconds kMemoryInterval{20};

}  // namespace

Supervisor::Supervisor(const RunOptions& options, const Plan& plan, Recorder& recorder)
    : options_(options), plan_(plan), follower_(options, plan, recorder), memory_limit_(options.memory_limit) {
  started_ = plan.first_worker;
  if (memory_limit_ == 0) memory_limit_ = machine_memory() / 10 * 9;
  for (size_t g = 0; g < plan.groups.size(); ++g) {
    queue_.push_back({.group = g, .cases = {plan.groups[g].cases.begin(), plan.groups[g].cases.end()}});
    const DeviceUse& use = plan.groups[g].device;
    if (!use.variable.empty()) slots_.try_emplace(use.variable, use.devices.size());
  }
}

void Supervisor::run() {
  while (!queue_.empty() || !active_.empty()) {
    if (!cancelled_ && options_.cancel != nullptr && options_.cancel->load()) {
      cancelled_ = true;
      for (const Work& work : queue_) follower_.give_up(work.cases, Verdict::kInfra, "cancelled before it started");
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
      follower_.follow(active->worker);
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
  const DeviceUse& use = plan_.groups[active.worker.work.group].device;
  if (active.device) slots_.at(use.variable).give_back(*active.device, use.workers);
}

void Supervisor::start(Work work, std::optional<size_t> device) {
  const Group& group = plan_.groups[work.group];
  const std::string id = fmt::format("w{:03}", started_++);
  WorkerPlan plan = follower_.plan_of(work, id);
  if (device) plan.device = group.device.variable + "=" + group.device.devices[*device];
  std::map<std::string, std::string> environment = group.environment;
  if (device) environment[group.device.variable] = group.device.devices[*device];
  const auto refuse = [&](const std::string& reason) {
    if (device) slots_.at(group.device.variable).give_back(*device, group.device.workers);
    follower_.give_up(work.cases, Verdict::kInfra, reason);
  };
  const Follower::Files files = follower_.files(id);
  if (Status written = follower_.write_plan(plan, files, &environment); !written.ok()) {
    return refuse(written.message());
  }
  Result<Process> process =
      Process::spawn({.argv = {options_.worker.string(), files.plan.string(), files.events.string()},
                      .environment = environment,
                      .log = files.log});
  if (!process) return refuse("worker: " + process.status().message());
  active_.push_back(std::make_unique<Active>(Active{.worker = {.id = id,
                                                               .work = std::move(work),
                                                               .log = files.log,
                                                               .reader = EventReader(files.events),
                                                               .deadline = Clock::now() + options_.load_timeout},
                                                    .device = device,
                                                    .process = *std::move(process),
                                                    .condemned = std::nullopt,
                                                    .next_memory_check = Clock::now()}));
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
  if (now >= active.worker.deadline) return condemn(active, follower_.overdue(active.worker));
  if (now < active.next_memory_check) return;
  active.next_memory_check = now + kMemoryInterval;
  const uint64_t used = active.process.anonymous_bytes();
  const uint64_t own = active.worker.running ? plan_.cases[*active.worker.running].memory_limit : 0;
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
  const bool clean = exit.signal == 0 && exit.code == 0 && !active.condemned;
  if (clean && active.worker.work.cases.empty()) return;
  Work rest =
      follower_.conclude(active.worker, {.text = active.condemned ? active.condemned->reason : exit.text(),
                                         .condemned = active.condemned.has_value(),
                                         .cancelled = cancelled_,
                                         .mute = !active.condemned && exit.signal == 0 && exit.code == kCannotReport});
  if (!rest.cases.empty()) queue_.push_front(std::move(rest));
}

}  // namespace assay::run
