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

  // Calls body(part) once for every part below `parts` (at most 65535) and returns when all are done. Which thread
  // takes a part is left open: a worker that comes late finds nothing left and keeps nobody waiting. So what a part
  // does must depend on its number alone.
  template <class Body>
  void run(size_t parts, const Body& body) {
    run_all([](const void* context, size_t part) { (*static_cast<const Body*>(context))(part); }, &body, parts);
  }

 private:
  using Task = void (*)(const void* context, size_t part);

  void run_all(Task task, const void* context, size_t parts);
  void take_parts(uint64_t round);
  void work();

  std::vector<std::thread> workers_;
  Task task_ = nullptr;            // of the round; unchanged while a part of it is taken and not finished
  const void* context_ = nullptr;  // same
  alignas(64) std::atomic<uint64_t> ticket_ = 0;    // round << 32 | parts << 16 | parts taken
  alignas(64) std::atomic<uint32_t> finished_ = 0;  // parts of this round
  alignas(64) std::atomic<uint32_t> round_ = 0;     // what sleeping workers watch
  std::atomic<bool> stop_ = false;
};

}  // namespace assay::cpu
