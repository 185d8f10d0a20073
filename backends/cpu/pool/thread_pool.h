// A small pool for short operators: the caller takes part, workers spin for some microseconds before they sleep.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

namespace assay::cpu {

// Cores that this process may run on (affinity mask), at least 1.
int available_cores();

// One caller at a time. Tasks must not throw and must not call the pool.
class ThreadPool {
 public:
  // threads >= 1, the caller included: threads - 1 workers are started.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  // Cuts [0, count) into one contiguous range a thread, at multiples of `grain` and from `count` and the number of
  // threads alone, and calls body(begin, end, thread) for each that is not empty. Returns when all are done.
  template <class Body>
  void split(size_t count, size_t grain, const Body& body) {
    const auto range = [&](size_t thread) {
      const size_t units = (count + grain - 1) / grain;
      const size_t end = units * thread / static_cast<size_t>(threads()) * grain;
      return end < count ? end : count;
    };
    run(
        [](const void* context, size_t thread) {
          const auto& call = *static_cast<const Call<Body, decltype(range)>*>(context);
          const size_t begin = call.range(thread);
          const size_t end = call.range(thread + 1);
          if (begin < end) call.body(begin, end, thread);
        },
        Call<Body, decltype(range)>{body, range});
  }

 private:
  using Task = void (*)(const void* context, size_t thread);

  template <class Body, class Range>
  struct Call {
    const Body& body;
    const Range& range;
  };

  template <class Context>
  void run(Task task, const Context& context) {
    run_all(task, &context);
  }
  void run_all(Task task, const void* context);
  void work(size_t thread);

  std::vector<std::thread> workers_;
  Task task_ = nullptr;
  const void* context_ = nullptr;
  alignas(64) std::atomic<uint32_t> round_ = 0;  // bumped for every task
  alignas(64) std::atomic<uint32_t> left_ = 0;   // workers that still run the task
  std::atomic<bool> stop_ = false;
};

}  // namespace assay::cpu
