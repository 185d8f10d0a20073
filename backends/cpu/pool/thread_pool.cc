#include "backends/cpu/pool/thread_pool.h"

#include <sched.h>

#include <algorithm>
#include <chrono>

namespace assay::cpu {
namespace {

constexpr std::chrono::microseconds kSpin{30};  // longer than the gaps between operators of one forward pass

// Waits until `done` holds: spins for kSpin, yielding now and then; false when the time is up.
template <class Done>
bool spin(const Done& done) {
  for (int i = 0; i < 256; ++i) {
    if (done()) return true;
  }
  const auto end = std::chrono::steady_clock::now() + kSpin;
  while (std::chrono::steady_clock::now() < end) {
    for (int i = 0; i < 64; ++i) {
      if (done()) return true;
    }
  }
  return done();
}

}  // namespace

int available_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return std::max(1u, std::thread::hardware_concurrency());
  return std::max(1, CPU_COUNT(&set));
}

ThreadPool::ThreadPool(int threads) {
  for (int i = 1; i < threads; ++i) workers_.emplace_back([this] { work(); });
}

ThreadPool::~ThreadPool() {
  stop_.store(true, std::memory_order_relaxed);
  round_.fetch_add(1, std::memory_order_release);
  round_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::run_all(Task task, const void* context, size_t parts) {
  if (workers_.empty() || parts < 2) {
    for (size_t part = 0; part < parts; ++part) task(context, part);
    return;
  }
  const uint32_t round = round_.load(std::memory_order_relaxed) + 1;
  task_ = task;
  context_ = context;
  finished_.store(0, std::memory_order_relaxed);
  ticket_.store(uint64_t{round} << 32 | uint64_t{parts} << 16, std::memory_order_release);
  round_.store(round, std::memory_order_release);
  round_.notify_all();
  take_parts(round);
  const auto wanted = static_cast<uint32_t>(parts);
  while (true) {
    const uint32_t finished = finished_.load(std::memory_order_acquire);
    if (finished == wanted) return;
    if (!spin([&] { return finished_.load(std::memory_order_acquire) == wanted; })) {
      finished_.wait(finished, std::memory_order_acquire);
    }
  }
}

// Takes parts of `round` until none is left. A taken part keeps the round open, so task_ and context_ are its own.
void ThreadPool::take_parts(uint64_t round) {
  uint64_t ticket = ticket_.load(std::memory_order_acquire);
  while (true) {
    const uint64_t parts = ticket >> 16 & 0xffff;
    const uint64_t part = ticket & 0xffff;
    if (ticket >> 32 != round || part == parts) return;
    if (!ticket_.compare_exchange_weak(ticket, ticket + 1, std::memory_order_acq_rel, std::memory_order_acquire)) {
      continue;
    }
    task_(context_, part);
    if (finished_.fetch_add(1, std::memory_order_acq_rel) + 1 == parts) finished_.notify_one();
    ticket = ticket_.load(std::memory_order_acquire);
  }
}

void ThreadPool::work() {
  uint32_t seen = 0;
  while (true) {
    while (!spin([&] { return round_.load(std::memory_order_acquire) != seen; })) {
      round_.wait(seen, std::memory_order_acquire);
    }
    seen = round_.load(std::memory_order_acquire);
    if (stop_.load(std::memory_order_relaxed)) return;
    take_parts(seen);
  }
}

}  // namespace assay::cpu
