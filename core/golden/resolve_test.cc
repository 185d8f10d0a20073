#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "assay/golden.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class ResolveGolden : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) / ("resolve_" + std::to_string(::getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  void add(const std::string& name) { std::ofstream(folder_ / name) << "{}"; }

  fs::path folder_;
};

TEST_F(ResolveGolden, TheExactFileComesBeforeTheOneForAnyPlatform) {
  add("golden_values_dev_any.json");
  add("golden_values_dev_dgx_h100.json");
  const Result<GoldenChoice> exact = resolve_golden(folder_, "dev", "dgx_h100");
  ASSERT_TRUE(exact.ok());
  EXPECT_TRUE(exact->exact);
  EXPECT_EQ(fs::path(exact->path).filename(), "golden_values_dev_dgx_h100.json");
  const Result<GoldenChoice> any = resolve_golden(folder_, "dev", "cpu_x86_64");
  ASSERT_TRUE(any.ok());
  EXPECT_FALSE(any->exact);
  EXPECT_EQ(fs::path(any->path).filename(), "golden_values_dev_any.json");
}

TEST_F(ResolveGolden, AMissingGoldenListsWhatIsThere) {
  add("golden_values_dev_dgx_h100.json");
  add("golden_values_dev_dgx_a100.json");
  const Result<GoldenChoice> none = resolve_golden(folder_, "dev", "cpu_x86_64");
  EXPECT_EQ(none.status().code(), StatusCode::kNotFound);
  EXPECT_THAT(none.status().message(), HasSubstr("golden_values_dev_cpu_x86_64.json"));
  EXPECT_THAT(none.status().message(),
              HasSubstr("present: golden_values_dev_dgx_a100.json, golden_values_dev_dgx_h100.json"));
  EXPECT_THAT(resolve_golden(folder_, "lts", "x").status().message(), HasSubstr("present: "));
}

TEST_F(ResolveGolden, AGoldenThatIsNoFileIsInvalidAndNotMissing) {
  add("golden_values_dev_any.json");
  fs::create_directory(folder_ / "golden_values_dev_one.json");
  fs::create_symlink("/nonexistent", folder_ / "golden_values_dev_two.json");
  for (const auto& [platform, seen] : {std::pair("one", "a folder"), std::pair("two", "a link that leads nowhere")}) {
    const Result<GoldenChoice> choice = resolve_golden(folder_, "dev", platform);
    ASSERT_FALSE(choice.ok());
    EXPECT_EQ(choice.status().code(), StatusCode::kInvalid);
    EXPECT_THAT(choice.status().message(), HasSubstr(seen));
  }
}

TEST_F(ResolveGolden, APendingFileIsNeverFound) {
  add("golden_values_dev_dgx_h100.pending.json");
  add("golden_values_dev_any.pending.json");
  const Result<GoldenChoice> none = resolve_golden(folder_, "dev", "dgx_h100");
  EXPECT_EQ(none.status().code(), StatusCode::kNotFound);
  EXPECT_THAT(none.status().message(), HasSubstr("present: none"));
  EXPECT_EQ(resolve_golden(folder_, "dev", "dgx_h100.pending").status().code(), StatusCode::kInvalid);
}

TEST_F(ResolveGolden, AFolderWithoutGoldensSaysNone) {
  EXPECT_THAT(resolve_golden(folder_, "dev", "x").status().message(), HasSubstr("present: none"));
  EXPECT_THAT(resolve_golden(folder_ / "nowhere", "dev", "x").status().message(), HasSubstr("present: none"));
}

TEST_F(ResolveGolden, NamesWithASlashAreRefused) {
  EXPECT_EQ(resolve_golden(folder_, "dev", "../x").status().code(), StatusCode::kInvalid);
  EXPECT_EQ(resolve_golden(folder_, "", "x").status().code(), StatusCode::kInvalid);
}

}  // namespace
}  // namespace assay
