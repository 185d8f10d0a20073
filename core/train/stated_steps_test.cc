#include "core/train/stated_steps.h"

#include <gmock/gmock.h>

#include <limits>
#include <vector>

namespace assay::train {
namespace {

using testing::HasSubstr;

Metric checked(int64_t start, int64_t end, int64_t interval, const std::vector<int64_t>& steps) {
  Metric metric{.name = "lm loss", .start_step = start, .end_step = end, .step_interval = interval, .values = {}};
  for (const int64_t step : steps) metric.values.push_back({step, 1.5, false});
  check_steps(&metric);
  return metric;
}

std::string gap(int64_t start, int64_t end, int64_t interval, const std::vector<int64_t>& steps) {
  return checked(start, end, interval, steps).gap;
}

std::vector<int64_t> every(int64_t first, int64_t last, int64_t by) {
  std::vector<int64_t> steps;
  for (int64_t step = first; step <= last; step += by) steps.push_back(step);
  return steps;
}

TEST(StatedSteps, WhatAWriterOfGoldensStatesIsWhole) {
  EXPECT_EQ(gap(1, 10, 1, every(1, 10, 1)), "");
  EXPECT_EQ(gap(3, 50, 1, every(3, 50, 1)), "");
  EXPECT_EQ(gap(1, 1, 5, {1}), "");
  EXPECT_EQ(gap(1, 5, 1, {1, 5, 2, 4, 3}), "") << "the order says nothing";
  EXPECT_EQ(gap(1, 9, 2, every(1, 9, 2)), "");
  EXPECT_EQ(gap(5, 50, 5, every(5, 50, 5)), "");
  EXPECT_EQ(gap(1, 10, 5, {1, 5, 10}), "") << "step 1, then the multiples";
  EXPECT_EQ(gap(1, 8, 2, {1, 2, 4, 6, 8}), "");
  EXPECT_EQ(checked(1, 10, 5, {1, 5, 10}).note, "");
}

TEST(StatedSteps, TheOlderSampleIsAdmittedAndNoted) {
  const Metric whole = checked(1, 50, 1, {1, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50});
  EXPECT_EQ(whole.gap, "");
  EXPECT_EQ(whole.note, "states every step and has every fifth");
  const Metric lacking = checked(1, 50, 1, {1, 5, 15, 20, 25, 30, 35, 40, 45, 50});
  EXPECT_EQ(lacking.gap, "");
  EXPECT_EQ(lacking.note, "states every step and has every fifth, without step 10");
  EXPECT_THAT(gap(1, 50, 1, {1, 5, 15, 25, 30, 35, 40, 45, 50}), HasSubstr("step 2 is missing"));
  EXPECT_THAT(gap(1, 50, 1, {1, 5, 10, 15, 20, 25, 30, 35, 40, 45}), HasSubstr("step 2 is missing"));
  EXPECT_THAT(gap(1, 50, 1, {1, 50}), HasSubstr("step 2 is missing"));
}

TEST(StatedSteps, HolesAndStepsBeyondAreCounted) {
  EXPECT_EQ(gap(1, 10, 1, {1, 2, 3, 4, 6, 7, 8, 9, 10}),
            "step 5 is missing, 1 of those that start_step 1, end_step 10, step_interval 1 state are");
  EXPECT_THAT(gap(1, 10, 1, {1}), HasSubstr("step 2 is missing, 9 of"));
  EXPECT_THAT(gap(1, 50, 1, every(1, 10, 1)), HasSubstr("step 11 is missing, 40 of"));
  EXPECT_THAT(gap(1, 10, 1, every(2, 10, 1)), HasSubstr("step 1 is missing, 1 of"));
  EXPECT_THAT(gap(1, 10, 1, every(1, 11, 1)), HasSubstr("step 11 is beyond"));
  EXPECT_THAT(gap(1, 10, 1, every(0, 10, 1)), HasSubstr("step 0 is beyond"));
  EXPECT_THAT(gap(1, 10, 1, every(-1, 10, 1)), HasSubstr("step -1 is beyond"));
  EXPECT_THAT(gap(1, 20, 5, {1, 5, 15, 20}), HasSubstr("step 10 is missing"));
  EXPECT_THAT(gap(1, 20, 5, {1, 10, 15, 20}), HasSubstr("step 5 is missing"));
  EXPECT_THAT(gap(1, 20, 5, {1, 5, 7, 10, 15, 20}), HasSubstr("step 7 is beyond"));
  EXPECT_THAT(gap(1, 48, 5, {1, 6, 11, 16, 21, 26, 31, 36, 41, 46}), HasSubstr("the last value is at step 46"));
  EXPECT_EQ(gap(1, 10, 1, {}), "") << "that there is no number is told by the judge";
}

TEST(StatedSteps, NumbersThatStateNothingAreRefused) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
  for (const int64_t interval : {int64_t{0}, int64_t{-1}, kMost, kLeast}) {
    EXPECT_THAT(gap(1, 10, interval, every(1, 10, 1)), HasSubstr("step_interval is " + std::to_string(interval)));
  }
  EXPECT_THAT(gap(10, 1, 1, every(1, 10, 1)), HasSubstr("start_step is 10 and end_step 1"));
  EXPECT_THAT(gap(-5, 10, 1, every(1, 10, 1)), HasSubstr("start_step is -5"));
  EXPECT_THAT(gap(1, kMost, 1, every(1, 10, 1)), HasSubstr("end_step"));
  EXPECT_THAT(gap(1, 10, 1, {kLeast, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, kMost}), HasSubstr("is beyond"));
  EXPECT_THAT(gap(1, int64_t{1} << 40, 1, {1}), HasSubstr("step 2 is missing, 1099511627775 of"));
}

}  // namespace
}  // namespace assay::train
