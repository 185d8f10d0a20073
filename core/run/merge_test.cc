#include "core/run/merge.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "core/run/folder_lock.h"
#include "core/run/merge_folders.h"
#include "core/run/run_fixture.h"

namespace assay::run {
namespace {

using testing::HasSubstr;

class MergedRun : public Run {
 protected:
  void SetUp() override {
    Run::SetUp();
    add_golden(add_case("a", {"ok echo"}), "ok echo", "echo");
    run();
    ASSERT_TRUE(result_->ok()) << result_->status().message();
  }
  Status merge_into(const fs::path& output) const {
    MergeOptions options;
    options.runs = {options_.output};
    options.output = output;
    return merge_runs(options).status();
  }
};

TEST_F(MergedRun, AFolderOfOthersIsRefusedEachTimeAndKeepsWhatItHas) {
  const fs::path output = dir_ / "theirs";
  fs::create_directories(output / "cases/mine");
  for (int i = 0; i < 3; ++i) {
    const Status status = merge_into(output);
    EXPECT_EQ(status.code(), StatusCode::kInvalid);
    EXPECT_THAT(status.message(), HasSubstr("holds another run"));
    EXPECT_TRUE(fs::exists(output / "cases/mine")) << "time " << i;
  }
}

TEST_F(MergedRun, WhatAnotherMergeIsWritingIsLeftAlone) {
  const fs::path output = dir_ / "merged";
  ASSERT_TRUE(merge_into(output).ok()) << merge_into(output).message();
  EXPECT_TRUE(merge_into(output).ok()) << "an earlier merge is replaced";
  const Result<FolderLock> lock = FolderLock::take(output);
  ASSERT_TRUE(lock.ok());
  EXPECT_THAT(merge_into(output).message(), HasSubstr("in use by"));
  EXPECT_TRUE(fs::exists(output / "results.jsonl"));
}

TEST_F(MergedRun, ARunThatWasCutOffBeforeItsCasesWereWrittenDownIsRefused) {
  const fs::path journal = options_.output / "results.jsonl";
  const std::string text = *read_file(journal);
  std::ofstream(journal) << text.substr(0, text.find('\n') + 1);
  const Status status = merge_into(dir_ / "merged");
  EXPECT_EQ(status.code(), StatusCode::kInvalid);
  EXPECT_THAT(status.message(),
              HasSubstr("before it had written down 1 of its 1 cases; go on with it: assay run --resume"));
  EXPECT_FALSE(fs::exists(dir_ / "merged/results.jsonl"));
}

TEST_F(MergedRun, AnInterruptedOneIsBegunAgain) {
  const fs::path output = dir_ / "merged";
  ASSERT_TRUE(merge_into(output).ok());
  fs::remove(output / "results.jsonl");
  EXPECT_TRUE(merge_into(output).ok());
  EXPECT_TRUE(fs::exists(output / "cases/a/actual.json"));
}

TEST_F(MergedRun, CasesThatCannotBeLookedAtAreNoEmptyOnes) {
  const fs::path loop = dir_ / "loop";
  fs::create_symlink(loop, loop);
  std::ofstream(dir_ / "file") << "x";
  for (const bool copy : {false, true}) {
    EXPECT_TRUE(place_cases(dir_ / "to", {{"a", dir_ / "absent"}}, copy).ok());
    for (const fs::path& from : {loop, loop / "a", dir_ / "file"}) {
      EXPECT_EQ(place_cases(dir_ / "to", {{"a", from}}, copy).code(), StatusCode::kInfra) << from;
      EXPECT_EQ(place_cases(dir_ / "to", {{"a", from}, {"a/b", dir_ / "absent"}}, copy).code(), StatusCode::kInfra)
          << from;
    }
  }
  fs::remove_all(options_.output / "cases/a");
  fs::create_symlink(loop, options_.output / "cases/a");
  const Status status = merge_into(dir_ / "merged");
  EXPECT_EQ(status.code(), StatusCode::kInfra);
  EXPECT_THAT(status.message(), HasSubstr("cases/a"));
}

}  // namespace
}  // namespace assay::run
