#include "core/golden/replace_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>

#include "core/golden/digest.h"
#include "core/golden/file.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class ReplaceFile : public testing::Test {
 protected:
  ReplaceFile() : folder_(fs::temp_directory_path() / ("replace_test_" + std::to_string(getpid()))) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    path_ = (folder_ / "golden.json").string();
  }
  ~ReplaceFile() override { fs::remove_all(folder_); }
  size_t files() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }
  fs::path folder_;
  std::string path_;
};

TEST_F(ReplaceFile, AFileThatChangedMeanwhileIsNotOverwritten) {
  std::ofstream(path_) << "one";
  const std::string digest = *digest_of_file(path_);
  std::ofstream(path_) << "two";
  const Status changed = replace_unchanged(path_, digest, "three");
  EXPECT_EQ(changed.code(), StatusCode::kInvalid);
  EXPECT_THAT(changed.message(), HasSubstr("changed since it was read"));
  EXPECT_EQ(*read_file(path_), "two");
  EXPECT_THAT(replace_unchanged(path_, "", "three").message(), HasSubstr("appeared"));
  EXPECT_TRUE(replace_unchanged(path_, *digest_of_file(path_), "three").ok());
  EXPECT_EQ(*read_file(path_), "three");
  fs::remove(path_);
  EXPECT_THAT(replace_unchanged(path_, digest, "three").message(), HasSubstr("vanished"));
  EXPECT_FALSE(fs::exists(path_));
  EXPECT_TRUE(replace_unchanged(path_, "", "new").ok());
  EXPECT_EQ(files(), 1U);
}

TEST_F(ReplaceFile, PermissionsAndLinksStay) {
  std::ofstream(folder_ / "real.json") << "one";
  fs::permissions(folder_ / "real.json", fs::perms(0640));
  fs::create_symlink("real.json", path_);
  ASSERT_TRUE(replace_unchanged(path_, *digest_of_file(path_), "two").ok());
  EXPECT_TRUE(fs::is_symlink(path_));
  EXPECT_EQ(*read_file((folder_ / "real.json").string()), "two");
  EXPECT_EQ(fs::status(folder_ / "real.json").permissions(), fs::perms(0640));
}

TEST_F(ReplaceFile, DevicesAndPipesAreWrittenToAndNeverReplaced) {
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  const int reader = open(path_.c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_TRUE(replace_file(path_, "through", Durability::kProcess).ok());
  std::array<char, 16> seen{};
  EXPECT_EQ(read(reader, seen.data(), seen.size()), 7);
  EXPECT_STREQ(seen.data(), "through");
  close(reader);
  EXPECT_TRUE(fs::is_fifo(path_));
  EXPECT_EQ(files(), 1U);
  EXPECT_THAT(replace_file("/dev/full", "x", Durability::kProcess).message(), HasSubstr("No space left"));
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
}

TEST_F(ReplaceFile, ALockHoldsOffOthersAndDiesWithItsProcess) {
  const pid_t child = fork();
  if (child == 0) {
    const auto lock = FolderLock::take(folder_.string());
    std::ofstream(folder_ / "held") << "x";
    for (;;) pause();
  }
  while (!fs::exists(folder_ / "held")) usleep(1000);
  const auto refused = FolderLock::take(folder_.string());
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.status().message(), HasSubstr("another assay is changing golden files"));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(FolderLock::take(folder_.string()).ok());
  EXPECT_TRUE(FolderLock::take(folder_.string()).ok()) << "a lock that went out of scope is free";
  EXPECT_EQ(FolderLock::take(folder_.string() + "/none").status().code(), StatusCode::kNotFound);
  EXPECT_EQ(files(), 1U) << "the lock leaves no file";
}

TEST_F(ReplaceFile, KilledAtAnyMomentThereIsTheOldFileOrTheNewOne) {
  const std::string old_text(200'000, 'o');
  const std::string new_text(300'000, 'n');
  for (int attempt = 0; attempt < 25; ++attempt) {
    std::ofstream(path_) << old_text;
    const pid_t child = fork();
    if (child == 0) {
      for (;;) {
        if (!replace_file(path_, new_text, Durability::kProcess).ok()) _exit(1);
        if (!replace_file(path_, old_text, Durability::kProcess).ok()) _exit(1);
      }
    }
    usleep(static_cast<useconds_t>(500 + 700 * attempt));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    const std::string seen = *read_file(path_);
    EXPECT_TRUE(seen == old_text || seen == new_text) << seen.size();
  }
}

}  // namespace
}  // namespace assay
