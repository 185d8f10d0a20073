#include "backends/model/checkpoint/tiling.h"

#include <gmock/gmock.h>

namespace assay::model {
namespace {

using ::testing::HasSubstr;

// The message of a refusal; empty when the boxes tile.
std::string refusal(const std::vector<int64_t>& shape, const std::vector<Box>& boxes) {
  return check_tiling("k", shape, boxes).message();
}

TEST(Tiling, AcceptsExactTilingsOnAnyAxis) {
  EXPECT_EQ(refusal({4, 6}, {{{0, 0}, {4, 6}}}), "");
  EXPECT_EQ(refusal({4, 6}, {{{0, 0}, {4, 2}}, {{0, 2}, {4, 4}}}), "");
  EXPECT_EQ(refusal({3, 3}, {{{0, 0}, {1, 2}}, {{0, 2}, {2, 1}}, {{2, 1}, {1, 2}}, {{1, 0}, {2, 1}}, {{1, 1}, {1, 1}}}),
            "");  // a pinwheel: no cut goes through
  EXPECT_EQ(refusal({}, {{{}, {}}}), "");
  EXPECT_EQ(refusal({0, 5}, {{{0, 0}, {0, 5}}}), "");
}

TEST(Tiling, RefusesOverlapEvenWhenTheVolumeIsRight) {
  EXPECT_THAT(refusal({4}, {{{0}, {2}}, {{1}, {2}}}), HasSubstr("overlap"));
  EXPECT_THAT(refusal({2, 2}, {{{0, 0}, {2, 1}}, {{0, 0}, {2, 1}}}), HasSubstr("overlap"));
}

TEST(Tiling, RefusesGaps) {
  EXPECT_THAT(refusal({4}, {{{0}, {2}}, {{3}, {1}}}), HasSubstr("gap"));
  EXPECT_THAT(refusal({4}, {}), HasSubstr("gap"));
}

TEST(Tiling, RefusesBoxesThatLeaveTheTensor) {
  EXPECT_THAT(refusal({4}, {{{2}, {3}}}), HasSubstr("out of bounds"));
  EXPECT_THAT(refusal({4}, {{{-1}, {5}}}), HasSubstr("out of bounds"));
  EXPECT_THAT(refusal({4}, {{{0, 0}, {4, 1}}}), HasSubstr("out of bounds"));
  EXPECT_THAT(refusal({4}, {{{INT64_MAX}, {INT64_MAX}}}), HasSubstr("out of bounds"));
}

TEST(Tiling, RefusesImpossibleShapes) {
  EXPECT_THAT(refusal({-1}, {{{0}, {-1}}}), HasSubstr("impossible"));
  EXPECT_THAT(refusal({int64_t{1} << 40, int64_t{1} << 40}, {}), HasSubstr("impossible"));
  EXPECT_THAT(refusal({INT64_MAX}, {}), HasSubstr("impossible"));
  EXPECT_THAT(refusal(std::vector<int64_t>(9, 1), {}), HasSubstr("9 dimensions"));
}

}  // namespace
}  // namespace assay::model
