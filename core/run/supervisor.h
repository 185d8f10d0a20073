// Starts workers for the groups of a plan, follows what they report, limits their time and memory, and sees to it that
// every case ends with a verdict whatever happens to them.
#pragma once

#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/run/device_slots.h"
#include "core/run/event_file.h"
#include "core/run/plan.h"
#include "core/run/process.h"
#include "core/run/recorder.h"
#include "core/run/run.h"

namespace assay::run {

// For one thread.
class Supervisor {
 public:
  // All outlive the supervisor.
  Supervisor(const RunOptions& options, const Plan& plan, Recorder& recorder);

  // Returns when every case of the groups has a verdict and no worker is left.
  void run();

  uint64_t crashes() const { return crashes_; }
  bool cancelled() const { return cancelled_; }

 private:
  using Clock = std::chrono::steady_clock;

  // Cases that wait for a worker.
  struct Work {
    size_t group = 0;
    std::deque<size_t> cases;
    int failed_loads = 0;  // workers in a row that died before they could run a case
    int idle_deaths = 0;   // workers in a row that died between cases without finishing one
  };

  // Why a worker is being killed.
  struct Condemned {
    std::string reason;
    Clock::time_point kill_at;
    bool killed = false;
  };

  struct Active {
    Work work;
    std::optional<size_t> device;  // of DeviceUse::devices of its group
    std::string id;
    std::filesystem::path log;
    Process process;
    EventReader reader;
    Clock::time_point deadline;
    bool loaded = false;
    bool progressed = false;        // a case finished
    std::optional<size_t> running;  // index of the case that runs
    bool judging = false;           // its requests are over
    std::string last_request;       // of that case
    std::string last_way;           // of a relation, that this request belongs to
    std::optional<Condemned> condemned;
    Clock::time_point next_memory_check;
  };

  bool start_one();
  std::optional<size_t> take_device(const DeviceUse& use, bool* has_to_wait);
  void give_back_device(const Active& active);
  void start(Work work, std::optional<size_t> device);
  void follow(Active& active);
  void handle(Active& active, const std::string& line);
  void enforce(Active& active);
  void condemn(Active& active, std::string reason);
  void conclude(Active& active, const Exit& exit);
  void give_up(const std::deque<size_t>& cases, Verdict verdict, const std::string& reason);
  void remove_leftovers(size_t index) const;    // of a worker that died: a checkpoint written anew
  std::string log_of_case(size_t index) const;  // "" when there is none
  std::string tail_of_log(const Active& active) const;

  const RunOptions& options_;
  const Plan& plan_;
  Recorder& recorder_;
  std::unordered_map<std::string, size_t> by_id_;
  std::deque<Work> queue_;
  std::map<std::string, DeviceSlots> slots_;  // by DeviceUse::variable
  std::vector<std::unique_ptr<Active>> active_;
  uint64_t memory_limit_ = 0;
  uint64_t started_ = 0;
  uint64_t crashes_ = 0;
  bool cancelled_ = false;
};

}  // namespace assay::run
