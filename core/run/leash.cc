#include "core/run/leash.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <system_error>

#include "core/command/process_table.h"
#include "core/run/event_file.h"
#include "core/run/events.h"

namespace assay::run {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::milliseconds;

constexpr Milliseconds kKilling{5000};  // of what cannot be killed

fs::path claim_of(const fs::path& events) { return events.string() + ".claim"; }
fs::path revocation_of(const fs::path& events) { return events.string() + ".revoked"; }

std::string heartbeat_name(const std::string& run_id, uint64_t session) {
  return fmt::format("{} {} ", run_id, session);
}

// Of a heartbeat of this run; none: it is another run's.
std::optional<uint64_t> session_of(const std::string& beat, const std::string& run_id) {
  uint64_t session = 0;
  if (!beat.starts_with(run_id + " ")) return std::nullopt;
  const auto read = std::from_chars(beat.data() + run_id.size() + 1, beat.data() + beat.size(), session);
  return read.ec == std::errc() ? std::optional(session) : std::nullopt;
}

// "w012": 12.
uint64_t number_of(const std::string& worker) {
  uint64_t number = 0;
  if (worker.starts_with('w')) std::from_chars(worker.data() + 1, worker.data() + worker.size(), number);
  return number;
}

std::string random_word() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}", device(), device());
}

// Those that lose their parents meanwhile, and those that had lost them, are children of this process: tie() saw to it.
void kill_descendants() {
  command::ProcessTable table;
  const Clock::time_point give_up = Clock::now() + kKilling;
  for (bool found = true; found && Clock::now() < give_up && table.read();) {
    found = false;
    for (size_t i = 0; i < table.size(); ++i) {
      if (table.zombie(i) || !table.descends(table.pid(i), ::getpid())) continue;
      ::kill(table.pid(i), SIGKILL);
      found = true;
    }
    if (found) std::this_thread::sleep_for(Milliseconds(2));
  }
}

}  // namespace

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

Result<std::unique_ptr<Heartbeat>> Heartbeat::start(const fs::path& file, const std::string& run_id, uint64_t session,
                                                    Milliseconds interval) {
  const std::string name = heartbeat_name(run_id, session);
  if (Status written = write_file(file, name + "0\n"); !written.ok()) return written;
  std::unique_ptr<Heartbeat> heart(new Heartbeat);
  heart->thread_ = std::thread([raw = heart.get(), file, name, interval] { raw->beat(file, name, interval); });
  return heart;
}

Heartbeat::~Heartbeat() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  stop_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Heartbeat::beat(const fs::path& file, const std::string& name, Milliseconds interval) {
  std::unique_lock lock(mutex_);
  for (uint64_t count = 1; !stop_.wait_for(lock, interval, [this] { return stopped_; }); ++count) {
    [[maybe_unused]] const Status status =
        write_file(file, fmt::format("{}{}\n", name, count));  // next time it may work
  }
}

Result<std::unique_ptr<Leash>> Leash::tie(const WorkerPlan& plan, const fs::path& events) {
  std::unique_ptr<Leash> leash(new Leash);
  leash->worker_ = plan.worker;
  leash->events_ = events;
  leash->heartbeat_ = plan.heartbeat;
  leash->run_id_ = plan.run_id;
  leash->number_ = number_of(plan.worker);
  leash->limit_ = Milliseconds(static_cast<int64_t>(plan.heartbeat_seconds * 1000));
  leash->claim_ = claim_of(events);
  const Result<std::string> beat = read_file(plan.heartbeat);
  if (beat.ok() && session_of(*beat, plan.run_id).value_or(0) > leash->number_) {
    return Status(StatusCode::kCancelled, plan.heartbeat + ": the run was resumed without this task");
  }
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  leash->name_ = fmt::format("{} {} {}\n", host_name(), ::getpid(), random_word());
  if (Status written = write_file(leash->claim_, leash->name_); !written.ok()) return written;
  if (leash->revoked()) {  // looked at after the claim: what comes between is seen by watch()
    return Status(StatusCode::kCancelled, revocation_of(events).string() + ": the runner has given this task up");
  }
  leash->thread_ = std::thread([raw = leash.get()] { raw->watch(); });
  return leash;
}

void Leash::revoke(const fs::path& events) {
  [[maybe_unused]] const Status status = write_file(revocation_of(events), "");  // the launcher's cancel comes as well
}

void Leash::clear(const fs::path& events) {
  std::error_code ignored;
  fs::remove(claim_of(events), ignored);
  fs::remove(revocation_of(events), ignored);
}

Milliseconds Leash::look_interval(double heartbeat_seconds) {
  return std::clamp(Milliseconds(static_cast<int64_t>(heartbeat_seconds * 1000 / 8)), Milliseconds(50),
                    Milliseconds(2000));
}

bool Leash::revoked() const {
  std::error_code code;
  return fs::exists(revocation_of(events_), code);
}

Leash::~Leash() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  stop_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Leash::watch() {
  const Milliseconds interval = look_interval(static_cast<double>(limit_.count()) / 1000);
  std::string last;
  Clock::time_point changed = Clock::now();
  std::unique_lock lock(mutex_);
  while (!stop_.wait_for(lock, interval, [this] { return stopped_; })) {
    if (Result<std::string> beat = read_file(heartbeat_); beat.ok() && *beat != last) {
      const std::optional<uint64_t> session = session_of(*beat, run_id_);
      if (session > number_) leave(heartbeat_.string() + ": the run was resumed without this worker");
      if (session) {
        last = *std::move(beat);
        changed = Clock::now();
      }
    }
    if (Clock::now() - changed > limit_) {
      end(fmt::format("{}: no sign of life of the runner for {:.1f} s; this worker ends itself", heartbeat_.string(),
                      static_cast<double>(limit_.count()) / 1000));
    }
    if (revoked()) leave(revocation_of(events_).string() + ": the runner has given this task up");
    const Result<std::string> claim = read_file(claim_);
    if (claim.ok() && *claim != name_) leave(claim_.string() + ": another worker has taken this task over");
  }
}

void Leash::end(const std::string& reason) const {
  nlohmann::ordered_json event = make_event(event::kWorkerOrphaned);
  event["worker"] = worker_;
  event["message"] = reason;
  if (Result<EventWriter> writer = EventWriter::go_on(events_)) {
    [[maybe_unused]] const Status written = writer->append(to_line(event));
  }
  leave(reason);
}

void Leash::leave(const std::string& reason) {
  std::fputs(("assay-worker: " + reason + "\n").c_str(), stderr);
  kill_descendants();
  ::_exit(kOrphaned);
}

}  // namespace assay::run
