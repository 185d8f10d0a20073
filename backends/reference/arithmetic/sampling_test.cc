#include "backends/reference/arithmetic/sampling.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <set>
#include <vector>

namespace assay::arithmetic {
namespace {

assay_sampling sampling(double temperature, int top_k, double top_p) { return {temperature, top_k, 0, top_p, 1234, 0}; }

TEST(Sampling, TopOneIsTheArgmaxWithTiesToTheLowerId) {
  const std::vector<float> logits = {1, 5, 5, 2};
  EXPECT_EQ(sample_token(logits, sampling(0.1, 1, 0), 7), 1);
}

TEST(Sampling, DrawsFollowTheSoftmax) {
  const std::vector<float> logits = {0, std::log(2.0f), std::log(5.0f)};
  std::array<int, 3> counts{};
  for (uint64_t position = 0; position < 40000; ++position) {
    ++counts[static_cast<size_t>(sample_token(logits, sampling(1, 0, 0), position))];
  }
  EXPECT_NEAR(counts[0] / 40000.0, 0.125, 0.01);
  EXPECT_NEAR(counts[1] / 40000.0, 0.25, 0.01);
  EXPECT_NEAR(counts[2] / 40000.0, 0.625, 0.01);
}

TEST(Sampling, DependsOnSeedPromptAndPositionAlone) {
  EXPECT_EQ(uniform_draw(1, 2, 3), uniform_draw(1, 2, 3));
  std::set<double> values = {uniform_draw(1, 2, 3), uniform_draw(2, 2, 3), uniform_draw(1, 3, 3),
                             uniform_draw(1, 2, 4), uniform_draw(2, 1, 3), uniform_draw(1, 3, 2)};
  EXPECT_EQ(values.size(), 6u);
}

TEST(Sampling, TopKKeepsEverythingEqualToTheKth) {
  const std::vector<float> logits = {3, 1, 1, 0, 1};
  std::set<int32_t> seen;
  for (uint64_t position = 0; position < 500; ++position) {
    seen.insert(sample_token(logits, sampling(2, 2, 0), position));
  }
  EXPECT_EQ(seen, (std::set<int32_t>{0, 1, 2, 4}));
}

TEST(Sampling, TopPKeepsTheTokenThatCrossesTheBorderAndAlwaysTheFirst) {
  const std::vector<float> logits = {std::log(0.5f), std::log(0.3f), std::log(0.2f)};
  std::set<int32_t> seen;
  for (uint64_t position = 0; position < 500; ++position) {
    seen.insert(sample_token(logits, sampling(1, 0, 0.6), position));
  }
  EXPECT_EQ(seen, (std::set<int32_t>{0, 1}));
  EXPECT_EQ(sample_token(logits, sampling(1, 0, 1e-9), 3), 0);
}

TEST(Sampling, LowTemperatureApproachesTheArgmax) {
  const std::vector<float> logits = {1, 2, 3};
  for (uint64_t position = 0; position < 50; ++position) {
    EXPECT_EQ(sample_token(logits, sampling(1e-3, 0, 0), position), 2);
  }
}

}  // namespace
}  // namespace assay::arithmetic
