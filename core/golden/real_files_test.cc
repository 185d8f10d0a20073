// Files that Megatron-LM itself wrote, and the goldens of this tree.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "assay/golden.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> goldens_under(const fs::path& folder) {
  std::vector<fs::path> found;
  if (!fs::is_directory(folder)) return found;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.path().filename().string().starts_with("golden_values_")) found.push_back(entry.path());
  }
  return found;
}

std::string content(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

TEST(RealFiles, StaticResultsAreWrittenByteForByteAsMegatronWroteThem) {
  const fs::path shared = ASSAY_SOURCE_DIR "/../shared";
  std::vector<fs::path> files = goldens_under(shared / "gold/cases");
  for (fs::path& path : goldens_under(shared / "vectors/cases")) files.push_back(std::move(path));
  if (files.empty()) GTEST_SKIP() << "no recorded results beside the source tree";
  for (const fs::path& path : files) {
    const Result<ResultSet> set = read_results(path);
    ASSERT_TRUE(set.ok()) << set.status().message();
    EXPECT_EQ(set->form, GoldenForm::kStatic) << path;
    EXPECT_TRUE(results_text(*set) == content(path)) << path;
  }
}

TEST(RealFiles, GoldensOfTheTreeAreReadWithoutNotes) {
  const std::vector<fs::path> files = goldens_under(ASSAY_SOURCE_DIR "/testcases");
  ASSERT_FALSE(files.empty());
  for (const fs::path& path : files) {
    const Result<ResultSet> set = read_results(path);
    ASSERT_TRUE(set.ok()) << set.status().message();
    EXPECT_THAT(set->notes, testing::IsEmpty()) << path;
    for (const RequestRecord& request : set->requests) EXPECT_TRUE(request.text.has_value()) << path;
  }
}

}  // namespace
}  // namespace assay
