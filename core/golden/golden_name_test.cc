#include "core/golden/golden_name.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

TEST(GoldenNames, TheEnvironmentEndsAtTheFirstUnderscore) {
  const auto name = parse_golden_name("golden_values_dev_dgx_h100_2nd.json");
  ASSERT_TRUE(name.has_value());
  EXPECT_EQ(name->environment, "dev");
  EXPECT_EQ(name->platform, "dgx_h100_2nd");
  EXPECT_FALSE(name->pending);
  const auto bare = parse_golden_name("golden_values_lts.json");
  ASSERT_TRUE(bare.has_value());
  EXPECT_EQ(bare->environment, "lts");
  EXPECT_EQ(bare->platform, "");
}

TEST(GoldenNames, APendingFileIsNoGolden) {
  const std::string pending = pending_name("dev", "cpu_x86_64");
  EXPECT_EQ(pending, "golden_values_dev_cpu_x86_64.pending.json");
  EXPECT_FALSE(is_golden_name(pending));
  EXPECT_TRUE(parse_golden_name(pending)->pending);
  EXPECT_EQ(parse_golden_name(pending)->platform, "cpu_x86_64");
  EXPECT_TRUE(is_golden_name(golden_name("dev", "cpu_x86_64")));
}

TEST(GoldenNames, OtherFilesHaveNone) {
  for (const char* file :
       {"", "golden_values", "golden_values_.jso", "actual.json", "golden_values_dev_any.json.aB3dE6",
        "old_golden_values_dev_any.json", "golden_values_dev_any.yaml"}) {
    EXPECT_FALSE(parse_golden_name(file).has_value()) << file;
  }
}

}  // namespace
}  // namespace assay
