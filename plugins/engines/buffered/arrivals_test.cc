#include "plugins/engines/buffered/arrivals.h"

#include <gtest/gtest.h>

#include <vector>

namespace assay::engines {
namespace {

std::vector<double> times(BufferedOptions options, size_t count) {
  Arrivals arrivals(options);
  std::vector<double> seconds;
  for (size_t i = 0; i < count; ++i) {
    seconds.push_back(arrivals.next_seconds());
    EXPECT_TRUE(arrivals.due(0, seconds.back()));
    EXPECT_FALSE(arrivals.due(0, seconds.back() - 1e-9));
    arrivals.take();
  }
  return seconds;
}

TEST(Arrivals, AreAllThereAtOnceWithoutARate) {
  Arrivals arrivals{BufferedOptions{}};
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(arrivals.due(0, 0));
    arrivals.take();
  }
}

TEST(Arrivals, ComeInGroupsStepByStep) {
  BufferedOptions options;
  options.requests_per_step = 2;
  options.requests_per_second = 100;
  Arrivals arrivals(options);
  for (uint64_t i = 0; i < 7; ++i) {
    EXPECT_TRUE(arrivals.due(i / 2, 0));
    EXPECT_EQ(i >= 2 && arrivals.due(i / 2 - 1, 1e9), false) << "the rate does not count then";
    arrivals.take();
  }
}

// Gaps of a Poisson process of 4 a second: mean 1/4, and as much for their standard deviation.
TEST(Arrivals, ArePoissonAndDependOnTheSeedAlone) {
  BufferedOptions options;
  options.requests_per_second = 4;
  const std::vector<double> seconds = times(options, 4000);
  double sum = 0;
  double squares = 0;
  for (size_t i = 1; i < seconds.size(); ++i) {
    const double gap = seconds[i] - seconds[i - 1];
    ASSERT_GT(gap, 0);
    sum += gap;
    squares += gap * gap;
  }
  const double mean = sum / static_cast<double>(seconds.size() - 1);
  EXPECT_NEAR(mean, 0.25, 0.02);
  EXPECT_NEAR(squares / static_cast<double>(seconds.size() - 1) - mean * mean, 0.0625, 0.01);
  EXPECT_EQ(times(options, 50), std::vector<double>(seconds.begin(), seconds.begin() + 50));
  options.seed = 99;
  EXPECT_NE(times(options, 1), std::vector<double>{seconds[0]});
}

}  // namespace
}  // namespace assay::engines
