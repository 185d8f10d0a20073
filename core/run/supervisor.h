// Starts workers for the groups of a plan on this machine, follows what they report, limits their time and memory, and
// sees to it that every case ends with a verdict whatever happens to them.
#pragma once

#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/run/device_slots.h"
#include "core/run/follower.h"
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

  uint64_t crashes() const { return follower_.crashes(); }
  bool cancelled() const { return cancelled_; }

 private:
  using Clock = std::chrono::steady_clock;

  // Why a worker is being killed.
  struct Condemned {
    std::string reason;
    Clock::time_point kill_at;
    bool killed = false;
  };

  struct Active {
    Followed worker;
    std::optional<size_t> device;  // of DeviceUse::devices of its group
    Process process;
    std::optional<Condemned> condemned;
    Clock::time_point next_memory_check;
  };

  bool start_one();
  std::optional<size_t> take_device(const DeviceUse& use, bool* has_to_wait);
  void give_back_device(const Active& active);
  void start(Work work, std::optional<size_t> device);
  void enforce(Active& active);
  void condemn(Active& active, std::string reason);
  void conclude(Active& active, const Exit& exit);

  const RunOptions& options_;
  const Plan& plan_;
  Follower follower_;
  std::deque<Work> queue_;
  std::map<std::string, DeviceSlots> slots_;  // by DeviceUse::variable
  std::vector<std::unique_ptr<Active>> active_;
  uint64_t memory_limit_ = 0;
  uint64_t started_ = 0;
  bool cancelled_ = false;
};

}  // namespace assay::run
