#include "core/run/partition.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <set>

namespace assay::run {
namespace {

// A random workload: groups of very different sizes, times over four orders of magnitude.
Workload random_work(std::mt19937& random, size_t most_pieces, int64_t most_load) {
  Workload work;
  const auto any = [&random](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  const size_t groups = static_cast<size_t>(any(1, 12));
  for (size_t g = 0; g < groups; ++g) work.loads.push_back(any(0, most_load));
  const int64_t pieces = any(0, static_cast<int64_t>(most_pieces));
  for (int64_t i = 0; i < pieces; ++i) {
    const int64_t skewed = std::min(any(0, static_cast<int64_t>(groups) - 1), any(0, static_cast<int64_t>(groups) - 1));
    int64_t time = 1;
    for (int64_t k = any(0, 4); k > 0; --k) time *= any(1, 10);
    work.pieces.push_back({.group = static_cast<uint32_t>(skewed), .time = time});
  }
  return work;
}

// Whether times and loads are what the assignment makes them.
void expect_exact(const Workload& work, const Partition& made, uint32_t shares) {
  ASSERT_EQ(made.share_of.size(), work.pieces.size());
  ASSERT_EQ(made.time.size(), shares);
  std::vector<int64_t> time(shares, 0);
  std::vector<std::set<uint32_t>> groups(shares);
  for (size_t i = 0; i < work.pieces.size(); ++i) {
    ASSERT_LT(made.share_of[i], shares);
    time[made.share_of[i]] += work.pieces[i].time;
    groups[made.share_of[i]].insert(work.pieces[i].group);
  }
  for (uint32_t share = 0; share < shares; ++share) {
    for (const uint32_t group : groups[share]) time[share] += work.loads[group];
    EXPECT_EQ(made.time[share], time[share]);
    EXPECT_EQ(made.loads[share], groups[share].size());
  }
}

// The best possible longest share, by trying everything.
int64_t best_longest(const Workload& work, std::vector<int64_t>& time, size_t piece, int64_t best) {
  if (piece == work.pieces.size()) return std::min(best, *std::max_element(time.begin(), time.end()));
  std::set<int64_t> tried;
  for (int64_t& one : time) {
    if (!tried.insert(one).second || one + work.pieces[piece].time >= best) continue;
    one += work.pieces[piece].time;
    best = best_longest(work, time, piece + 1, best);
    one -= work.pieces[piece].time;
  }
  return best;
}

TEST(Partition, EveryPieceIsInExactlyOneShareAndTimesAreTheSumOfPiecesAndLoads) {
  std::mt19937 random(1);
  for (int round = 0; round < 400; ++round) {
    const Workload work = random_work(random, 200, 2000);
    const uint32_t shares = std::uniform_int_distribution<uint32_t>(1, 20)(random);
    expect_exact(work, partition(work, shares), shares);
  }
}

TEST(Partition, IsTheSameEveryTime) {
  std::mt19937 random(2);
  for (int round = 0; round < 50; ++round) {
    const Workload work = random_work(random, 200, 500);
    EXPECT_EQ(partition(work, 7).share_of, partition(work, 7).share_of);
  }
}

TEST(Partition, WithoutLoadsTheLongestShareIsWithinTheBoundOfLongestPieceFirst) {
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    const Workload work = random_work(random, 9, 0);
    if (work.pieces.empty()) continue;
    const uint32_t shares = std::uniform_int_distribution<uint32_t>(2, 4)(random);
    std::vector<int64_t> time(shares, 0);
    const int64_t best = best_longest(work, time, 0, INT64_MAX);
    const double bound = static_cast<double>(best) * (4.0 / 3 - 1.0 / (3 * shares));
    EXPECT_LE(static_cast<double>(partition(work, shares).longest()), bound + 1e-6) << "round " << round;
  }
}

TEST(Partition, WithLoadsTheLongestShareIsAtMostTheMeanAndOnePieceMore) {
  std::mt19937 random(4);
  for (int round = 0; round < 400; ++round) {
    const Workload work = random_work(random, 300, 3000);
    const uint32_t shares = std::uniform_int_distribution<uint32_t>(1, 16)(random);
    const Partition made = partition(work, shares);
    int64_t longest_piece = 0;
    for (const auto& [group, time] : work.pieces) longest_piece = std::max(longest_piece, time + work.loads[group]);
    const int64_t mean = std::accumulate(made.time.begin(), made.time.end(), int64_t{0}) / shares;
    EXPECT_LE(made.longest(), std::max(mean + longest_piece, least_time(work, shares) * 105 / 100) + 1);
    EXPECT_GE(made.longest(), least_time(work, shares) - (shares - 1));
  }
}

TEST(Partition, GroupsThatFitAreNeverSplit) {
  Workload work;
  for (uint32_t group = 0; group < 8; ++group) {
    work.loads.push_back(1000);
    for (int i = 0; i < 25; ++i) work.pieces.push_back({.group = group, .time = 100});
  }
  for (const uint32_t shares : {1U, 2U, 4U, 8U}) {
    const Partition made = partition(work, shares);
    EXPECT_EQ(made.all_loads(), 8U) << shares;
    EXPECT_EQ(made.longest(), 8 * 3500 / shares) << shares;
  }
}

TEST(Partition, ALoadIsWorthMoreThanALittleBalance) {
  Workload work;
  for (uint32_t group = 0; group < 2; ++group) {
    work.loads.push_back(50);
    for (int i = 0; i < 100; ++i) work.pieces.push_back({.group = group, .time = group == 0 ? 100 : 104});
  }
  const Partition made = partition(work, 2);
  EXPECT_EQ(made.all_loads(), 2U) << "4 % of imbalance are within the tolerance";
}

TEST(Partition, AGroupLargerThanItsFairShareIsSplitOverAsFewSharesAsThatTakes) {
  Workload work;
  work.loads = {500, 500};
  for (int i = 0; i < 900; ++i) work.pieces.push_back({.group = 0, .time = 100});
  for (int i = 0; i < 100; ++i) work.pieces.push_back({.group = 1, .time = 100});
  const Partition made = partition(work, 10);
  EXPECT_LE(made.longest(), least_time(work, 10) * 105 / 100 + 100);
  EXPECT_LE(made.all_loads(), 11U) << "nine or ten shares load the first model, one the second";
}

TEST(Partition, MoreSharesThanPiecesLeaveSomeEmpty) {
  Workload work;
  work.loads = {10};
  work.pieces = {{.group = 0, .time = 100}, {.group = 0, .time = 100}};
  const Partition made = partition(work, 5);
  EXPECT_EQ(std::count(made.time.begin(), made.time.end(), 0), 3);
  EXPECT_EQ(made.longest(), 110);
  EXPECT_EQ(partition(Workload{}, 3).time, std::vector<int64_t>(3, 0));
}

TEST(Partition, ALoadThatCostsMoreThanAllCasesKeepsThemTogether) {
  Workload work;
  work.loads = {1'000'000};
  for (int i = 0; i < 100; ++i) work.pieces.push_back({.group = 0, .time = 10});
  EXPECT_EQ(partition(work, 8).all_loads(), 1U);
}

TEST(Partition, AHundredThousandCasesInAThousandSharesAreNearlyEven) {
  std::mt19937 random(5);
  Workload work;
  std::lognormal_distribution<double> seconds(1, 1.2);
  for (int group = 0; group < 60; ++group) work.loads.push_back(20'000'000);
  for (int i = 0; i < 100'000; ++i) {
    work.pieces.push_back(
        {.group = static_cast<uint32_t>(random() % 60), .time = static_cast<int64_t>(seconds(random) * 1e6) + 1});
  }
  const Partition made = partition(work, 1000);
  expect_exact(work, made, 1000);
  EXPECT_LE(static_cast<double>(made.longest()), 1.06 * static_cast<double>(least_time(work, 1000)));
  EXPECT_LE(made.all_loads(), 1100U);
}

}  // namespace
}  // namespace assay::run
