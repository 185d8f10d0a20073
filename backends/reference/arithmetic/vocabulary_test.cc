#include "backends/reference/arithmetic/vocabulary.h"

#include <gmock/gmock.h>

#include <cmath>
#include <vector>

namespace assay::arithmetic {
namespace {

using ::testing::ElementsAre;

std::vector<float> some_logits(size_t count) {
  std::vector<float> logits(count);
  for (size_t i = 0; i < count; ++i) logits[i] = 8 * std::sin(static_cast<float>(i) * 12.9898f);
  return logits;
}

RowSummary summary_of(const std::vector<float>& logits) {
  std::vector<Segment> segments;
  std::vector<float> scratch(kSegment);
  for (size_t begin = 0; begin < logits.size(); begin += kSegment) {
    const size_t length = std::min(kSegment, logits.size() - begin);
    segments.push_back(scan_segment({&logits[begin], length}, begin, scratch.data()));
  }
  return summarise(segments);
}

TEST(Vocabulary, LogprobsAreTheLogSoftmaxAcrossSegments) {
  const std::vector<float> logits = some_logits(10000);
  long double total = 0;
  for (const float v : logits) total += std::exp(static_cast<long double>(v));
  const RowSummary summary = summary_of(logits);
  for (const size_t id : {0u, 4095u, 4096u, 9999u}) {
    const auto exact = static_cast<double>(static_cast<long double>(logits[id]) - std::log(total));
    EXPECT_NEAR(static_cast<double>(summary.logprob(logits[id])), exact, 3e-6);
  }
}

TEST(Vocabulary, ArgmaxTiesGoToTheLowerIdAcrossSegments) {
  std::vector<float> logits(9000, 0.0f);
  logits[4100] = 3;
  logits[8500] = 3;
  EXPECT_EQ(summary_of(logits).argmax, 4100);
}

TEST(Vocabulary, RanksCountLowerIdsFirstAmongEquals) {
  const std::vector<float> logits = {1, 3, 3, 2};
  EXPECT_EQ(rank_of(logits, 1), 0);
  EXPECT_EQ(rank_of(logits, 2), 1);
  EXPECT_EQ(rank_of(logits, 3), 2);
  EXPECT_EQ(rank_of(logits, 0), 3);
}

TEST(Vocabulary, TopIdsDescendAndPutLowerIdsFirstAmongEquals) {
  const std::vector<float> logits = {1, 3, 3, 2, NAN};
  std::vector<int32_t> ids(5);
  top_ids(logits, 5, ids.data());
  EXPECT_THAT(ids, ElementsAre(1, 2, 3, 0, 4));
}

TEST(Vocabulary, ANanLogitMakesTheLogprobsNan) {
  std::vector<float> logits = some_logits(50);
  logits[20] = NAN;
  EXPECT_TRUE(std::isnan(summary_of(logits).logprob(logits[0])));
}

}  // namespace
}  // namespace assay::arithmetic
