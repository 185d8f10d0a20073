// Workers that are not children of the runner: how they notice that nobody waits for them any more.
//
// The runner keeps changing a file, its heartbeat, which names the run and its session, that is the number of the first
// worker since it was begun or resumed: workers of smaller numbers are of an earlier session, and end. Clocks of two
// machines are not compared, only changes are looked at. Each worker writes its name to a file beside its events, its
// claim: a worker that finds another one's there was taken for lost (its node was cut off) and has been replaced. That
// nobody is to work on these events any more is a file of its own, which the runner alone writes.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "assay/status.h"
#include "core/run/worker_plan.h"

namespace assay::run {

std::string host_name();

// The runner's side: a thread that changes the file while this lives.
class Heartbeat {
 public:
  // Fails with kInfra where the file cannot be written.
  static Result<std::unique_ptr<Heartbeat>> start(const std::filesystem::path& file, const std::string& run_id,
                                                  uint64_t session, std::chrono::milliseconds interval);
  ~Heartbeat();
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

 private:
  Heartbeat() = default;
  void beat(const std::filesystem::path& file, const std::string& name, std::chrono::milliseconds interval);

  std::mutex mutex_;
  std::condition_variable stop_;
  bool stopped_ = false;
  std::thread thread_;
};

// The worker's side: a thread that ends this process and all that descends from it once the heartbeat has not changed
// for plan.heartbeat_seconds or is that of a later session, or the claim is another worker's or revoked. It says so on
// stderr and, where the runner may be alive after all, as worker_orphaned in `events`. Exit code kOrphaned.
class Leash {
 public:
  static constexpr int kOrphaned = 3;

  // Makes the claim. Fails with kInfra where it cannot be written, kCancelled where it was revoked or the run is in a
  // later session.
  static Result<std::unique_ptr<Leash>> tie(const WorkerPlan& plan, const std::filesystem::path& events);
  ~Leash();

  // The runner's side: whoever has the claim of these events, or comes to make it, ends itself. For what a launcher
  // does not reach: the far end of an ssh, a node that was cut off.
  static void revoke(const std::filesystem::path& events);
  static void clear(const std::filesystem::path& events);  // nobody has the claim yet, and it is not revoked

  // Time between two looks of a worker whose plan has this heartbeat_seconds.
  static std::chrono::milliseconds look_interval(double heartbeat_seconds);

  Leash(const Leash&) = delete;
  Leash& operator=(const Leash&) = delete;

 private:
  Leash() = default;
  void watch();
  bool revoked() const;
  [[noreturn]] void end(const std::string& reason) const;
  [[noreturn]] static void leave(const std::string& reason);

  std::string worker_;
  std::filesystem::path events_;
  std::filesystem::path heartbeat_;
  std::string run_id_;
  uint64_t number_ = 0;  // of worker_
  std::chrono::milliseconds limit_{};
  std::filesystem::path claim_;
  std::string name_;  // in the claim
  std::mutex mutex_;
  std::condition_variable stop_;
  bool stopped_ = false;
  std::thread thread_;
};

}  // namespace assay::run
