#include "core/run/quantities.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>

#include "core/run/process.h"

namespace assay::run {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr size_t kBlock = 64u << 20;  // bytes

const Measured kMeasured{.throughput = {5, 10, 11}, .peak_bytes = 1000, .prefill_tokens = 7};

TEST(Quantities, OnlyWhatMetricsListsIsAdded) {
  CaseOrder order;
  order.metrics = {"generated_text", "throughput"};
  ResultSet results;
  add_quantities(order, kMeasured, &results);
  ASSERT_THAT(results.quantities, SizeIs(1));
  EXPECT_EQ(results.quantities[0].name, "throughput");
  EXPECT_THAT(results.quantities[0].values, ElementsAre(5, 10, 11));
  EXPECT_FALSE(results.quantities[0].scalar);
}

TEST(Quantities, AllAreAddedWhereTheRunAsksForThem) {
  CaseOrder order;
  order.record_quantities = true;
  ResultSet results;
  add_quantities(order, kMeasured, &results);
  ASSERT_THAT(results.quantities, SizeIs(3));
  EXPECT_EQ(results.quantities[1].name, "mem-max-allocated-bytes");
  EXPECT_THAT(results.quantities[1].values, ElementsAre(1000));
  EXPECT_TRUE(results.quantities[1].scalar);
  EXPECT_EQ(results.quantities[2].name, "lifetime_prefill_token_count");
  EXPECT_THAT(results.quantities[2].values, ElementsAre(7));
}

TEST(Quantities, NumberOfTheEngineItselfWins) {
  CaseOrder order;
  order.record_quantities = true;
  ResultSet results;
  results.requests.resize(2);
  results.requests[0].extra = {{"lifetime_prefill_token_count", "3"}, {"ttft", "0.5"}};
  results.requests[1].extra = {{"lifetime_prefill_token_count", "4"}, {"throughput", "\"fast\""}};
  add_quantities(order, kMeasured, &results);
  EXPECT_THAT(results.quantities[2].values, ElementsAre(4));
  EXPECT_THAT(results.quantities[0].values, ElementsAre(5, 10, 11)) << "a text is no number";
  EXPECT_THAT(results.requests[0].extra, ElementsAre(std::pair<std::string, std::string>("ttft", "0.5")));
  EXPECT_THAT(results.requests[1].extra, SizeIs(1));
}

TEST(Quantities, CaseIsRunSeveralTimesOnlyToMeasureThroughput) {
  CaseOrder order;
  order.passes = 8;
  EXPECT_EQ(passes_of(order), 1);
  order.metrics = {"throughput"};
  EXPECT_EQ(passes_of(order), 8);
}

TEST(Quantities, ThroughputCountsTheEnginesSecondsAndElseTheWallClock) {
  SessionResult session;
  session.generated_tokens = 100;
  EXPECT_DOUBLE_EQ(throughput_of(session, 4), 25);
  session.prefill_seconds = 0.5;
  session.decode_seconds = 1.5;
  EXPECT_DOUBLE_EQ(throughput_of(session, 4), 50);
  EXPECT_DOUBLE_EQ(throughput_of(SessionResult(), 0), 0);
}

TEST(Quantities, PeakMemoryStartsAgain) {
  const auto peak = [] { return proc_kilobytes("/proc/self/status", "VmHWM"); };
  void* block = ::mmap(nullptr, kBlock, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(block, MAP_FAILED);
  std::memset(block, 1, kBlock);
  const uint64_t high = peak();
  ::munmap(block, kBlock);
  reset_peak_memory();
  if (peak() == high) GTEST_SKIP() << "this kernel does not reset the peak";
  EXPECT_LE(peak() + kBlock / 2, high);
}

}  // namespace
}  // namespace assay::run
