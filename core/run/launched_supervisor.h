// Has the groups of a plan run by a launcher: one job a group, of one task or several; follows what the workers report
// through the output folder, asks the launcher now and then, and sees to it that every case ends with a verdict.
//
// What a worker's end means:
//   it died by itself       the running case is CRASHED, the rest goes on in a job of its own, as on this machine
//   its node failed         unfinished cases, the running one included, are run again, LaunchOptions::losses times
//   begun anew by the system (requeue) it goes on after what its event file has; counts as a loss
//   somebody cancelled it, or the job's time is over   unfinished cases are INFRA
//   a case's own timeout    the task is cancelled, the case is CRASHED, the rest goes on
#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/run/follower.h"
#include "core/run/launch_options.h"
#include "core/run/launcher.h"
#include "core/run/plan.h"
#include "core/run/recorder.h"
#include "core/run/run.h"

namespace assay::run {

// For one thread.
class LaunchedSupervisor {
 public:
  // All outlive it.
  LaunchedSupervisor(const RunOptions& options, const Plan& plan, Recorder& recorder, Launcher& launcher,
                     const LaunchOptions& launch);

  // Returns when every case of the groups has a verdict and no task is left, or what is left has been cancelled.
  void run();

  uint64_t crashes() const { return follower_.crashes(); }
  bool cancelled() const { return cancelled_; }

 private:
  using Clock = std::chrono::steady_clock;

  struct Task {
    Followed worker;
    TaskState state;
    std::optional<Clock::time_point> running_since;
    std::optional<Clock::time_point> exited_at;
    std::string condemned;  // why it was cancelled by us; empty: it was not
    Clock::time_point condemned_at;
  };
  struct Job {
    uint64_t id = 0;
    std::vector<std::unique_ptr<Task>> tasks;  // null: over
    std::optional<Clock::time_point> unreachable_since;
  };
  // A job that is to be started. One whose submission got no answer may be there all the same, and run: its name, its
  // workers and their files stay what they are from one try to the next, and are no other job's.
  struct Waiting {
    std::vector<Work> works = {};  // one a task, all of one group
    LaunchJob job = {};
    std::vector<std::unique_ptr<Task>> tasks = {};  // empty: it was not tried yet
    Clock::time_point since;                        // of the first try
    Clock::time_point next_try;
    std::chrono::milliseconds pause{1000};
  };

  bool is_cancelled() const { return options_.cancel != nullptr && options_.cancel->load(); }
  void start_waiting();
  bool start(Waiting& waiting);  // false: not now
  Status prepare(Waiting& waiting);
  void give_up(const Waiting& waiting, const std::string& reason);
  bool patient(const Waiting& waiting) const;
  double time_limit(const Work& work) const;
  bool follow_all();
  void poll_all();
  void poll(Job& job);
  void judge(Job& job, size_t index, TaskState state);  // may end the task
  void lose(std::unique_ptr<Task>& task, const std::string& reason, bool again);
  void die(std::unique_ptr<Task>& task, const std::string& reason);
  void enforce(Job& job, size_t index);
  void condemn(Job& job, size_t index, std::string reason);
  void resubmit(Work work);
  void unreachable(Job& job, const Status& status);
  void cancel_all();
  void await_the_end();
  void complain(const Job& job, const Status& status);
  void note(const std::string& message);

  const RunOptions& options_;
  const Plan& plan_;
  Recorder& recorder_;
  Launcher& launcher_;
  const LaunchOptions& launch_;
  Follower follower_;
  std::deque<Waiting> waiting_;
  std::vector<Job> jobs_;
  Clock::time_point answered_;     // when the launcher last started a job, or told of one
  std::vector<size_t> uncleaned_;  // cases whose worker may still have been at it when it was lost
  Clock::time_point next_poll_;
  std::chrono::milliseconds poll_pause_;
  uint64_t named_;  // workers
  bool cancelled_ = false;
};

}  // namespace assay::run
