#include "core/run/launched_supervisor.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "core/run/events.h"
#include "core/run/leash.h"
#include "core/run/process.h"
#include "core/run/worker.h"

namespace assay::run {
namespace {

using Milliseconds = std::chrono::milliseconds;

constexpr Milliseconds kLeastSleep{20};  // between two looks at the event files
constexpr Milliseconds kMostSleep{500};
constexpr Milliseconds kMostPause{60'000};       // between two tries to start a job
constexpr Milliseconds kLateEvents{10'000};      // what a worker wrote before a clean end may take so long to be seen
constexpr Milliseconds kDeafness{60'000};        // a cancelled task that the launcher still calls alive
constexpr Milliseconds kEndOfCancelled{15'000};  // waited for after a cancelled run
constexpr double kMostSeconds = 1e8;             // of a task; clocks count nanoseconds
constexpr double kStartSeconds = 60;             // of a task's time limit, for what is around the worker

Milliseconds milliseconds(double seconds) { return Milliseconds(static_cast<int64_t>(seconds * 1000)); }

double seconds_of(Milliseconds value) { return static_cast<double>(value.count()) / 1000; }

}  // namespace

LaunchedSupervisor::LaunchedSupervisor(const RunOptions& options, const Plan& plan, Recorder& recorder,
                                       Launcher& launcher, const LaunchOptions& launch)
    : options_(options),
      plan_(plan),
      recorder_(recorder),
      launcher_(launcher),
      launch_(launch),
      follower_(options, plan, recorder),
      poll_pause_(milliseconds(launch.poll)),
      named_(plan.first_worker) {
  const int jobs = std::max(options.jobs, 0);
  const size_t tasks = static_cast<size_t>(launch.tasks > 0 ? launch.tasks : std::max(jobs, 1));
  for (size_t g = 0; g < plan.groups.size(); ++g) {
    if (plan.groups[g].cases.empty()) continue;
    Waiting& waiting = waiting_.emplace_back();
    for (std::vector<size_t>& cases :
         split_by_cost(plan, plan.groups[g].cases, tasks, static_cast<size_t>(launch.cases_per_task))) {
      waiting.works.push_back({.group = g, .cases = {cases.begin(), cases.end()}});
    }
  }
}

void LaunchedSupervisor::run() {
  Milliseconds sleep = kLeastSleep;
  next_poll_ = Clock::now() + poll_pause_;
  while (!waiting_.empty() || !jobs_.empty()) {
    if (is_cancelled()) {
      cancel_all();
      break;
    }
    start_waiting();
    const bool news = follow_all();
    if (Clock::now() >= next_poll_) poll_all();
    for (Job& job : jobs_) {
      for (size_t i = 0; i < job.tasks.size(); ++i) enforce(job, i);
    }
    std::erase_if(jobs_, [](const Job& job) {
      return std::all_of(job.tasks.begin(), job.tasks.end(), [](const auto& task) { return task == nullptr; });
    });
    sleep = news ? kLeastSleep : std::min(sleep * 3 / 2, kMostSleep);
    if (news) poll_pause_ = milliseconds(launch_.poll);
    if (!waiting_.empty() || !jobs_.empty()) std::this_thread::sleep_for(sleep);
  }
  for (const size_t index : uncleaned_) follower_.tidy(index);
}

void LaunchedSupervisor::start_waiting() {
  while (!waiting_.empty() && !is_cancelled() && Clock::now() >= waiting_.front().next_try && start(waiting_.front())) {
    waiting_.pop_front();
  }
}

// Its cases are INFRA. Nobody works for them, should a job of theirs be there, or come to be.
void LaunchedSupervisor::give_up(const Waiting& waiting, const std::string& reason) {
  for (const auto& task : waiting.tasks) Leash::revoke(follower_.files(task->worker.id).events);
  for (const Work& work : waiting.works) follower_.give_up(work.cases, Verdict::kInfra, reason);
}

// The time that a task may need when everything takes as long as it may.
double LaunchedSupervisor::time_limit(const Work& work) const {
  if (launch_.seconds > 0) return launch_.seconds;
  double sum = kStartSeconds + seconds_of(options_.load_timeout);
  for (const size_t index : work.cases) {
    sum += seconds_of(plan_.cases[index].timeout) * std::max(plan_.cases[index].order.repeats, 1);
  }
  return std::min(sum, kMostSeconds);
}

// Names the job and its workers, and writes their files.
Status LaunchedSupervisor::prepare(Waiting& waiting) {
  const Group& group = plan_.groups[waiting.works.front().group];
  LaunchJob& job = waiting.job;
  job.name = fmt::format("assay-{}-{}", group.head.run_id, named_);          // that of its first worker
  for (const auto& [name, value] : group.env_vars) {                         // a node has an environment of its own
    if (!name.ends_with("_VISIBLE_DEVICES")) job.environment[name] = value;  // the launcher's system binds devices
  }
  job.devices = static_cast<uint32_t>(launch_.devices >= 0 ? launch_.devices : group.device.variable.empty() ? 0 : 1);
  job.cpus = static_cast<uint32_t>(launch_.cpus);
  job.memory = launch_.memory;
  job.most_at_once = static_cast<uint32_t>(std::max(options_.jobs, 0));
  for (const Work& work : waiting.works) {
    const std::string id = fmt::format("w{:03}", named_++);
    const Follower::Files files = follower_.files(id);
    job.seconds = std::max(job.seconds, time_limit(work));
    if (launch_.memory == 0) {
      for (const size_t index : work.cases) job.memory = std::max(job.memory, plan_.cases[index].memory_limit);
    }
    job.tasks.push_back(
        {.argv = {options_.worker.string(), files.plan.string(), files.events.string()}, .log = files.log.string()});
    waiting.tasks.push_back(std::make_unique<Task>(Task{.worker = {.id = id,
                                                                   .work = work,
                                                                   .log = files.log,
                                                                   .reader = EventReader(files.events, true),
                                                                   .deadline = Clock::time_point::max()},
                                                        .state = {},
                                                        .running_since = std::nullopt,
                                                        .exited_at = std::nullopt,
                                                        .condemned = "",
                                                        .condemned_at = {}}));
    WorkerPlan plan = follower_.plan_of(work, id);
    plan.heartbeat = (options_.output / "workers" / "heartbeat").string();
    plan.heartbeat_seconds = launch_.heartbeat;
    Leash::clear(files.events);
    Status written = follower_.write_plan(plan, files, &job.environment);
    if (written.ok()) written = write_file(files.events, "");  // no node remembers that it was not there
    if (!written.ok()) return written;
  }
  return {};
}

// Of a system that tells of our jobs it is known that it answers: then it is full, and there will be room.
bool LaunchedSupervisor::patient(const Waiting& waiting) const {
  return Clock::now() - std::max(waiting.since, answered_) < milliseconds(launch_.patience);
}

bool LaunchedSupervisor::start(Waiting& waiting) {
  if (waiting.tasks.empty()) {
    waiting.since = Clock::now();
    if (Status prepared = prepare(waiting); !prepared.ok()) {
      give_up(waiting, prepared.message());
      return true;
    }
  }
  const Result<uint64_t> id = launcher_.start(waiting.job);
  if (!id) {
    const bool passes = id.status().code() == StatusCode::kExhausted;
    const std::string message = fmt::format("launcher {}: {}", options_.launcher, id.status().message());
    if (passes && patient(waiting)) {
      if (waiting.pause == Waiting().pause) note(message);
      waiting.next_try = Clock::now() + waiting.pause;
      waiting.pause = std::min(waiting.pause * 2, kMostPause);
      return false;
    }
    if (!passes) note(message);
    give_up(waiting, !passes ? message
                             : fmt::format("launcher {}: no job could be started for {:.0f} s: {}", options_.launcher,
                                           launch_.patience, id.status().message()));
    return true;
  }
  answered_ = Clock::now();
  note(fmt::format("launcher {}: job {} ({}), {} task(s)", options_.launcher, *id, waiting.job.name,
                   waiting.tasks.size()));
  jobs_.push_back({.id = *id, .tasks = std::move(waiting.tasks), .unreachable_since = std::nullopt});
  next_poll_ = std::min(next_poll_, Clock::now() + milliseconds(launch_.poll));
  return true;
}

bool LaunchedSupervisor::follow_all() {
  bool news = false;
  for (Job& job : jobs_) {
    for (std::unique_ptr<Task>& task : job.tasks) {
      if (!task) continue;
      if (follower_.follow(task->worker)) {
        news = true;
        job.unreachable_since.reset();
        if (!task->running_since) task->running_since = Clock::now();  // before the launcher said so
        if (task->worker.deadline == Clock::time_point::max()) {
          task->worker.deadline = Clock::now() + options_.load_timeout;
        }
      }
      if (task->worker.over && task->worker.work.cases.empty()) task.reset();
    }
  }
  return news;
}

void LaunchedSupervisor::poll_all() {
  for (Job& job : jobs_) {
    if (is_cancelled()) return;  // each question may take its time
    poll(job);
  }
  poll_pause_ = std::min(poll_pause_ * 5 / 4, milliseconds(launch_.poll_most));
  next_poll_ = Clock::now() + poll_pause_;
}

void LaunchedSupervisor::poll(Job& job) {
  if (std::all_of(job.tasks.begin(), job.tasks.end(), [](const auto& task) { return task == nullptr; })) return;
  Result<std::vector<TaskState>> states = launcher_.poll(job.id, job.tasks.size());
  if (!states) return unreachable(job, states.status());
  job.unreachable_since.reset();
  answered_ = Clock::now();
  for (size_t i = 0; i < job.tasks.size(); ++i) {
    if (job.tasks[i]) judge(job, i, std::move((*states)[i]));
  }
}

void LaunchedSupervisor::unreachable(Job& job, const Status& status) {
  if (!job.unreachable_since) {
    job.unreachable_since = Clock::now();
    complain(job, status);
  }
  const bool full = status.code() == StatusCode::kExhausted;  // as for a job that is to be started
  const Clock::time_point since = full ? std::max(*job.unreachable_since, answered_) : *job.unreachable_since;
  if (Clock::now() - since < milliseconds(launch_.patience)) return;
  for (std::unique_ptr<Task>& task : job.tasks) {
    if (task) {
      lose(task,
           fmt::format("{} for {:.0f} s: {}", full ? "could not be submitted" : "out of reach", launch_.patience,
                       status.message()),
           false);
    }
  }
}

void LaunchedSupervisor::judge(Job& job, size_t index, TaskState state) {
  std::unique_ptr<Task>& task = job.tasks[index];
  const int begun_anew = state.restarts - task->state.restarts;
  const bool goes_on = state.phase == ASSAY_TASK_WAITING || state.phase == ASSAY_TASK_RUNNING;
  if (goes_on && !state.reason.empty() && state.reason != task->state.reason) {
    note(fmt::format("{}: {}", task->worker.id, state.reason));
  }
  task->state = std::move(state);
  const TaskState& now = task->state;
  if (begun_anew > 0) {
    task->worker.work.losses += begun_anew;
    task->running_since.reset();
    task->exited_at.reset();
    note(fmt::format("{}: begun anew by launcher {} ({} time(s)){}{}", task->worker.id, options_.launcher, now.restarts,
                     now.reason.empty() ? "" : ": ", now.reason));
    if (task->worker.work.losses > launch_.losses) {
      [[maybe_unused]] const Status status = launcher_.cancel(job.id, index);
      return lose(task, fmt::format("begun anew {} times, the limit is {}", now.restarts, launch_.losses), false);
    }
  }
  if (now.phase == ASSAY_TASK_WAITING) {
    task->running_since.reset();
    task->worker.deadline = Clock::time_point::max();
    return;
  }
  if (now.phase == ASSAY_TASK_RUNNING) {
    if (!task->running_since) {
      task->running_since = Clock::now();
      task->worker.deadline = Clock::now() + options_.load_timeout;
    }
    return;
  }
  follower_.follow(task->worker);  // what it wrote last
  if (task->worker.over && task->worker.work.cases.empty()) return task.reset();
  const std::string why = now.reason.empty() ? "" : " (" + now.reason + ")";
  if (now.phase == ASSAY_TASK_LOST) {
    if (!task->condemned.empty()) return die(task, task->condemned);
    return lose(task, now.reason.empty() ? "the task was lost" : now.reason, now.again);
  }
  if (task->worker.orphaned) return lose(task, "the worker missed the runner's signs of life", true);
  if (now.exit_code == 0 && now.signal == 0) {  // then it has written everything, which has only to be seen
    if (!task->exited_at) task->exited_at = Clock::now();
    if (Clock::now() - *task->exited_at < kLateEvents) return;
  }
  die(task, Exit{now.exit_code, now.signal}.text() + why);
}

void LaunchedSupervisor::die(std::unique_ptr<Task>& task, const std::string& reason) {
  Leash::revoke(follower_.files(task->worker.id).events);  // what ended may have been its client alone
  std::string text = reason;
  const TaskState& state = task->state;
  const bool exited = state.phase == ASSAY_TASK_EXITED && state.signal == 0;
  // Else it died before it could write, and the end of its log says of what.
  const bool unseen = !task->condemned.empty() || (exited && state.exit_code == 0);
  if (!task->worker.heard && unseen) {
    text += fmt::format("; no event of it in {}: is that folder on a file system that {} sees too?",
                        follower_.files(task->worker.id).events.string(),
                        task->state.where.empty() ? "its node" : "node " + task->state.where);
  }
  Work rest =
      follower_.conclude(task->worker, {.text = text,
                                        .condemned = !task->condemned.empty(),
                                        .cancelled = cancelled_,
                                        .mute = exited && task->condemned.empty() && state.exit_code == kCannotReport});
  task.reset();
  resubmit(std::move(rest));
}

void LaunchedSupervisor::lose(std::unique_ptr<Task>& task, const std::string& reason, bool again) {
  Work rest = std::move(task->worker.work);
  const std::string where = task->state.where.empty() ? task->worker.host : task->state.where;
  const std::string text = fmt::format("launcher {}: {}{}: {}", options_.launcher, task->worker.id,
                                       where.empty() ? "" : " on " + where, reason);
  const std::optional<size_t> running = task->worker.running;
  Leash::revoke(follower_.files(task->worker.id).events);
  if (running) {
    follower_.tidy(*running);
    const assay_task_phase phase = task->state.phase;
    if (phase != ASSAY_TASK_EXITED && phase != ASSAY_TASK_LOST) uncleaned_.push_back(*running);
  }
  task.reset();
  if (rest.cases.empty()) return;
  ++rest.losses;
  if (again && rest.losses <= launch_.losses) {
    note(fmt::format("{}; {} unfinished case(s) are run again", text, rest.cases.size()));
    return resubmit(std::move(rest));
  }
  note(fmt::format("{}; {} case(s) have no result", text, rest.cases.size()));
  const std::string often = again ? fmt::format(" (lost {} times)", rest.losses) : "";
  for (const size_t index : rest.cases) {
    follower_.give_up({index}, Verdict::kInfra,
                      text + often + (running == index ? "; while this case ran" : "; before this case began"));
  }
}

void LaunchedSupervisor::resubmit(Work work) {
  if (work.cases.empty()) return;
  Waiting& waiting = waiting_.emplace_back();
  waiting.works.push_back(std::move(work));
}

void LaunchedSupervisor::enforce(Job& job, size_t index) {
  std::unique_ptr<Task>& task = job.tasks[index];
  if (!task) return;
  const Clock::time_point now = Clock::now();
  if (!task->condemned.empty()) {
    if (now - task->condemned_at > kDeafness) die(task, task->condemned);
    return;
  }
  if (task->running_since && !task->worker.heard && now - *task->running_since > milliseconds(launch_.appear)) {
    condemn(job, index,
            fmt::format("not one event {:.0f} s (workers.appear) after its start{}", launch_.appear,
                        task->state.reason.empty() ? "" : " (" + task->state.reason + ")"));
  } else if (now >= task->worker.deadline) {
    condemn(job, index, follower_.overdue(task->worker));
  }
}

void LaunchedSupervisor::condemn(Job& job, size_t index, std::string reason) {
  Task& task = *job.tasks[index];
  task.condemned = std::move(reason);
  task.condemned_at = Clock::now();
  Leash::revoke(follower_.files(task.worker.id).events);
  if (Status status = launcher_.cancel(job.id, index); !status.ok()) complain(job, status);
  poll_pause_ = milliseconds(launch_.poll);
  next_poll_ = std::min(next_poll_, Clock::now() + poll_pause_);
}

void LaunchedSupervisor::cancel_all() {
  cancelled_ = true;
  for (const Waiting& waiting : waiting_) give_up(waiting, "cancelled before it started");
  waiting_.clear();
  for (Job& job : jobs_) {
    if (Status status = launcher_.cancel(job.id); !status.ok()) complain(job, status);
    for (const std::unique_ptr<Task>& task : job.tasks) {
      if (task) Leash::revoke(follower_.files(task->worker.id).events);
    }
  }
  await_the_end();
  for (Job& job : jobs_) {
    for (std::unique_ptr<Task>& task : job.tasks) {
      if (!task) continue;
      follower_.follow(task->worker);
      if (task->worker.over && task->worker.work.cases.empty()) continue;
      if (task->worker.heard) {
        die(task, "cancelled");
      } else {
        follower_.give_up(task->worker.work.cases, Verdict::kInfra, "cancelled before it started");
      }
    }
  }
  jobs_.clear();
}

// Until the launcher says that nothing is left, or for some seconds.
void LaunchedSupervisor::await_the_end() {
  const Clock::time_point end = Clock::now() + kEndOfCancelled;
  bool left = true;
  while (left && Clock::now() < end) {
    left = false;
    for (const Job& job : jobs_) {
      if (Clock::now() >= end) return;
      const Result<std::vector<TaskState>> states = launcher_.poll(job.id, job.tasks.size());
      if (!states) continue;  // out of reach: nothing to wait for
      left = left || std::any_of(states->begin(), states->end(), [](const TaskState& state) {
               return state.phase == ASSAY_TASK_WAITING || state.phase == ASSAY_TASK_RUNNING;
             });
    }
    if (left) std::this_thread::sleep_for(Milliseconds(500));
  }
}

void LaunchedSupervisor::complain(const Job& job, const Status& status) {
  note(fmt::format("launcher {}: job {}: {}", options_.launcher, job.id, status.message()));
}

void LaunchedSupervisor::note(const std::string& message) {
  nlohmann::ordered_json event = make_event(event::kNote);
  event["message"] = message;
  recorder_.note(event);
}

}  // namespace assay::run
