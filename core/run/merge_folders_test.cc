#include "core/run/merge_folders.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "tests/temporary_folder.h"

namespace assay::run {
namespace {

namespace fs = std::filesystem;

TEST(PlaceCases, ThoseInFoldersOfOthersHaveTheirOwn) {
  for (const bool copy : {false, true}) {
    const tests::TemporaryFolder own;
    const fs::path& dir = own.path();
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
}

TEST(PlaceCases, ACopyHasWhateverLinksAndPipesLieInACase) {
  const tests::TemporaryFolder own;
  const fs::path& dir = own.path();
  const fs::path from = dir / "run/cases/a";
  fs::create_directories(from / "steps");
  std::ofstream(from / "steps/1") << "one";
  fs::create_symlink("steps/1", from / "latest");
  fs::create_symlink("nowhere", from / "dangling");
  fs::create_symlink(".", from / "loop");
  ASSERT_EQ(::mkfifo((from / "pipe").c_str(), 0600), 0);
  fs::create_directories(dir / "links");
  ASSERT_TRUE(place_cases(dir / "links", {{"a", from}, {"a/b", from / "steps"}}, false).ok());
  for (const fs::path& source : {from, dir / "links/cases/a"}) {
    fs::create_directories(dir / "out");
    const Status placed = place_cases(dir / "out", {{"a", source}}, true);
    ASSERT_TRUE(placed.ok()) << placed.message();
    std::string text;
    std::ifstream(dir / "out/cases/a/latest") >> text;
    EXPECT_EQ(text, "one");
    EXPECT_FALSE(fs::exists(dir / "out/cases/a/pipe"));
    EXPECT_TRUE(fs::is_symlink(fs::symlink_status(dir / "out/cases/a/dangling")));
    EXPECT_FALSE(fs::is_symlink(fs::symlink_status(dir / "out/cases/a/steps")));
    fs::remove_all(dir / "out");
  }
}

}  // namespace
}  // namespace assay::run
