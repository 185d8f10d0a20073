#include "backends/cpu/pool/thread_pool.h"

#include <gtest/gtest.h>

#include <chrono>
#include <vector>

namespace assay::cpu {
namespace {

TEST(ThreadPool, EveryPartRunsOnceAtAnyNumberOfThreads) {
  for (const int threads : {1, 2, 3, 7}) {
    ThreadPool pool(threads);
    for (const size_t parts : {0u, 1u, 2u, 5u, 64u, 1000u}) {
      std::vector<int> visits(parts, 0);
      pool.run(parts, [&](size_t part) { ++visits[part]; });
      EXPECT_EQ(visits, std::vector<int>(parts, 1)) << threads << " threads";
    }
  }
}

TEST(ThreadPool, ManyShortRoundsNeverMixTheirParts) {
  ThreadPool pool(3);
  for (size_t round = 0; round < 20000; ++round) {
    size_t results[7] = {};
    pool.run(7, [&](size_t part) { results[part] = round * 7 + part; });
    for (size_t part = 0; part < 7; ++part) ASSERT_EQ(results[part], round * 7 + part);
  }
}

TEST(ThreadPool, WorksAfterASleep) {
  ThreadPool pool(4);
  std::atomic<int> total = 0;
  for (int i = 0; i < 20; ++i) {
    pool.run(4, [&](size_t) { ++total; });
    if (i % 5 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  EXPECT_EQ(total, 80);
}

}  // namespace
}  // namespace assay::cpu
