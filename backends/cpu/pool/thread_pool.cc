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
  for (int i = 1; i < threads; ++i) workers_.emplace_back([this, i] { work(static_cast<size_t>(i)); });
}

ThreadPool::~ThreadPool() {
  stop_.store(true, std::memory_order_relaxed);
  round_.fetch_add(1, std::memory_order_release);
  round_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::run_all(Task task, const void* context) {
  if (!workers_.empty()) {
    task_ = task;
    context_ = context;
    left_.store(static_cast<uint32_t>(workers_.size()), std::memory_order_relaxed);
    round_.fetch_add(1, std::memory_order_release);
    round_.notify_all();
  }
  task(context, 0);
  while (true) {
    const uint32_t left = left_.load(std::memory_order_acquire);
    if (left == 0) return;
    if (!spin([&] { return left_.load(std::memory_order_acquire) == 0; })) left_.wait(left, std::memory_order_acquire);
  }
}

void ThreadPool::work(size_t thread) {
  uint32_t seen = 0;
  while (true) {
    while (!spin([&] { return round_.load(std::memory_order_acquire) != seen; })) {
      round_.wait(seen, std::memory_order_acquire);
    }
    seen = round_.load(std::memory_order_acquire);
    if (stop_.load(std::memory_order_relaxed)) return;
    task_(context_, thread);
    if (left_.fetch_sub(1, std::memory_order_acq_rel) == 1) left_.notify_one();
  }
}

}  // namespace assay::cpu
