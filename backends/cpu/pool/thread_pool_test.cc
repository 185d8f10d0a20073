#include "backends/cpu/pool/thread_pool.h"

#include <gtest/gtest.h>

#include <chrono>
#include <mutex>
#include <vector>

namespace assay::cpu {
namespace {

TEST(ThreadPool, EveryElementIsVisitedOnceAtAnyNumberOfThreads) {
  for (const int threads : {1, 2, 3, 7}) {
    ThreadPool pool(threads);
    for (const size_t count : {0u, 1u, 2u, 5u, 64u, 1000u}) {
      std::vector<int> visits(count, 0);
      pool.split(count, 4, [&](size_t begin, size_t end, size_t) {
        for (size_t i = begin; i < end; ++i) ++visits[i];
      });
      EXPECT_EQ(visits, std::vector<int>(count, 1)) << threads << " threads";
    }
  }
}

TEST(ThreadPool, RangesBeginAtMultiplesOfTheGrain) {
  ThreadPool pool(3);
  std::mutex mutex;
  pool.split(50, 8, [&](size_t begin, size_t, size_t) {
    const std::scoped_lock lock(mutex);
    EXPECT_EQ(begin % 8, 0u);
  });
}

TEST(ThreadPool, WorksAfterASleep) {
  ThreadPool pool(4);
  std::atomic<int> total = 0;
  for (int i = 0; i < 20; ++i) {
    pool.split(4, 1, [&](size_t begin, size_t end, size_t) { total += static_cast<int>(end - begin); });
    if (i % 5 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  EXPECT_EQ(total, 80);
}

}  // namespace
}  // namespace assay::cpu
