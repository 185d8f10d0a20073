// What the runner makes of the events of its workers, wherever they run: verdicts, and after the end of a worker what
// is left of its work.
#pragma once

#include <chrono>
#include <deque>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <unordered_map>

#include "core/run/event_file.h"
#include "core/run/plan.h"
#include "core/run/recorder.h"
#include "core/run/run.h"

namespace assay::run {

// Cases that wait for a worker, or are with one: those without a verdict.
struct Work {
  size_t group = 0;
  std::deque<size_t> cases;
  int failed_loads = 0;  // workers in a row that died before they could run a case
  int idle_deaths = 0;   // workers in a row that died between cases without finishing one
  int losses = 0;        // workers that were lost with their node
};

// One worker, as far as its events tell.
struct Followed {
  using Clock = std::chrono::steady_clock;

  std::string id;  // "w000"
  Work work;
  std::filesystem::path log;
  EventReader reader;
  Clock::time_point deadline;                    // of what it does now
  bool heard = false;                            // there was an event
  bool loaded = false;                           // or the load failed
  bool progressed = false;                       // a case finished
  bool over = false;                             // it said that it has done all
  bool orphaned = false;                         // it ended itself, because the runner gave no sign of life
  std::string host = {};                         // that it runs on, where it says so
  int starts = 0;                                // workers that wrote to the file, one after the other
  std::optional<size_t> running = std::nullopt;  // index of the case that runs
  bool judging = false;                          // its requests are over
  std::string last_request = {};                 // of that case
  std::string last_way = {};                     // of a relation, that this request belongs to
};

// How a worker ended.
struct Death {
  std::string text;        // "exit code 3"
  bool condemned = false;  // the runner ended it
  bool cancelled = false;  // with the whole run
  bool mute = false;       // it could not write its events (kCannotReport): no fault of the engine
};

// For one thread.
class Follower {
 public:
  // All outlive it.
  Follower(const RunOptions& options, const Plan& plan, Recorder& recorder);

  // Files of a worker below OUTPUT/workers: wNNN.plan.json and so on.
  struct Files {
    std::filesystem::path plan, events, log;
  };
  Files files(const std::string& id) const;

  // What the worker of `work` is told, `worker` and `cases` included.
  WorkerPlan plan_of(const Work& work, const std::string& id) const;

  // Writes the plan without its secrets; where it has some, a variable that holds them is set in `environment`.
  Status write_plan(const WorkerPlan& plan, const Files& files, std::map<std::string, std::string>* environment) const;

  // Reads the events that are new and passes them on. True: there were some.
  bool follow(Followed& worker);

  // The worker is gone for a reason that lies with it, or was ended. Returns what another worker shall do: no cases
  // when nothing is left, or nobody shall.
  Work conclude(Followed& worker, const Death& death);

  // The folder of a case whose worker is gone: a checkpoint written anew goes, and secrets, which its engine had no
  // time to take out of its files.
  void tidy(size_t index) const;

  void give_up(const std::deque<size_t>& cases, Verdict verdict, const std::string& reason);

  // What is being waited for when worker.deadline is over.
  std::string overdue(const Followed& worker) const;

  // "; last output: ..." of the running case, else of the worker; "" when there is none.
  std::string tail_of_log(const Followed& worker) const;

  uint64_t crashes() const { return crashes_; }

 private:
  void handle(Followed& worker, const std::string& line);
  void handle_case(Followed& worker, const std::string& name, const nlohmann::ordered_json& event);
  void remove_leftovers(size_t index) const;    // a checkpoint written anew
  std::string log_of_case(size_t index) const;  // "" when there is none

  const RunOptions& options_;
  const Plan& plan_;
  Recorder& recorder_;
  std::unordered_map<std::string, size_t> by_id_;
  uint64_t crashes_ = 0;
};

}  // namespace assay::run
