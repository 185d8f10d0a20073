#include "tools/bandwidth/read_bandwidth.h"

#include <gtest/gtest.h>

namespace assay::tools {
namespace {

TEST(ReadBandwidth, BestIsAtLeastTheMedianAndBothArePositive) {
  const ReadBandwidth rate = measure_read_bandwidth(size_t{8} << 20, 2, 5);
  EXPECT_GT(rate.median_gb_per_s, 0.0);
  EXPECT_GE(rate.best_gb_per_s, rate.median_gb_per_s);
}

TEST(ReadBandwidth, OneThreadAndOnePassAreEnough) { EXPECT_GT(measure_read_bandwidth(1, 1, 1).best_gb_per_s, 0.0); }

}  // namespace
}  // namespace assay::tools
