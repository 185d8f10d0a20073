#include "core/run/merge_folders.h"

#include <gtest/gtest.h>

#include <fstream>

namespace assay::run {
namespace {

namespace fs = std::filesystem;

TEST(PlaceCases, ThoseInFoldersOfOthersHaveTheirOwn) {
  const fs::path dir = fs::canonical(::testing::TempDir()) / "assay_place_cases";
  for (const bool copy : {false, true}) {
    fs::remove_all(dir);
    std::vector<CaseFolder> folders;
    for (const char* id : {"p", "p/child", "p/child/grandchild", "q/deep/case"}) {
      folders.push_back({id, dir / "run/cases" / id});
      fs::create_directories(folders.back().from / "repeat_2");
      for (const char* file : {"actual.json", "repeat_2/actual.json"}) std::ofstream(folders.back().from / file) << id;
    }
    fs::create_directories(dir / "out");
    const Status placed = place_cases(dir / "out", folders, copy);
    ASSERT_TRUE(placed.ok()) << placed.message();
    for (const CaseFolder& folder : folders) {
      for (const char* file : {"actual.json", "repeat_2/actual.json"}) {
        std::string text;
        std::ifstream(dir / "out/cases" / folder.id / file) >> text;
        EXPECT_EQ(text, folder.id) << file;
      }
    }
  }
  fs::remove_all(dir);
}

}  // namespace
}  // namespace assay::run
