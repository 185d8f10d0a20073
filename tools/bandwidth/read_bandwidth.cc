#include "tools/bandwidth/read_bandwidth.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <thread>
#include <vector>

namespace assay::tools {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;

// Eight independent sums of whole cache lines, so that the loads and not the additions are the limit.
__attribute__((target_clones("avx512f", "avx2", "default"))) uint64_t sum(const uint64_t* data, size_t count) {
  uint64_t lanes[64] = {};
  size_t i = 0;
  for (; i + 64 <= count; i += 64) {
    for (size_t lane = 0; lane < 64; ++lane) lanes[lane] += data[i + lane];
  }
  for (; i < count; ++i) lanes[0] += data[i];
  uint64_t total = 0;
  for (uint64_t lane : lanes) total += lane;
  return total;
}

}  // namespace

ReadBandwidth measure_read_bandwidth(size_t bytes, int threads, int passes) {
  const size_t rounded = (bytes + kHugePage - 1) / kHugePage * kHugePage;
  std::unique_ptr<void, decltype(&std::free)> memory(std::aligned_alloc(kHugePage, rounded), &std::free);
  if (!memory) throw std::bad_alloc();
  madvise(memory.get(), rounded, MADV_HUGEPAGE);
  auto* words = static_cast<uint64_t*>(memory.get());
  const size_t count = rounded / sizeof(uint64_t);
  const size_t share = count / static_cast<size_t>(threads);

  std::vector<double> rates;
  std::chrono::steady_clock::time_point begin;
  int pass = 0;
  auto on_phase = [&]() noexcept {  // runs once between phases, while every thread waits
    const auto now = std::chrono::steady_clock::now();
    const double seconds = std::chrono::duration<double>(now - begin).count();
    if (pass > 0) rates.push_back(static_cast<double>(share * static_cast<size_t>(threads)) * 8 / seconds / 1e9);
    ++pass;
    begin = std::chrono::steady_clock::now();
  };
  rates.reserve(static_cast<size_t>(passes));
  std::barrier barrier(threads, on_phase);
  std::atomic<uint64_t> total{0};
  auto work = [&](int thread) {
    uint64_t* part = words + share * static_cast<size_t>(thread);
    std::fill(part, part + share, uint64_t{1});
    barrier.arrive_and_wait();
    for (int i = 0; i < passes; ++i) {
      total += sum(part, share);
      barrier.arrive_and_wait();
    }
  };
  std::vector<std::thread> pool;
  for (int thread = 1; thread < threads; ++thread) pool.emplace_back(work, thread);
  work(0);
  for (std::thread& thread : pool) thread.join();
  if (total != static_cast<uint64_t>(passes) * share * static_cast<uint64_t>(threads)) std::abort();

  std::sort(rates.begin(), rates.end());
  return {.best_gb_per_s = rates.back(), .median_gb_per_s = rates[rates.size() / 2]};
}

}  // namespace assay::tools
