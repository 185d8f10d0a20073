#include "core/golden/file.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace assay {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::StartsWith;

class File : public testing::Test {
 protected:
  File() { fs::create_directories(folder_); }
  ~File() override { fs::remove_all(folder_); }

  // One line that begins with the path and says `words`.
  void expect_refused(const std::string& path, StatusCode code, const std::string& words) {
    const Result<std::string> read = read_file(path);
    ASSERT_FALSE(read.ok()) << path;
    EXPECT_EQ(read.status().code(), code) << read.status().message();
    EXPECT_THAT(read.status().message(), StartsWith(path));
    EXPECT_THAT(read.status().message(), HasSubstr(words));
    EXPECT_EQ(read.status().message().find('\n'), std::string::npos);
  }
  const fs::path folder_ = fs::path(testing::TempDir()) / ("file_" + std::to_string(::getpid()));
};

TEST_F(File, LongerThanTheMostIsRefusedBeforeItIsRead) {
  const std::string path = (folder_ / "f").string();
  std::ofstream(path, std::ios::binary) << "12345";
  EXPECT_EQ(*read_file(path, 5), "12345");
  EXPECT_EQ(read_file(path, 4).status().code(), StatusCode::kInvalid);
  fs::resize_file(path, kMostFileBytes + 1);  // a hole: takes no room on the disk
  expect_refused(path, StatusCode::kInvalid, "longer than 1073741824 bytes");
}

TEST_F(File, IsReadWhole) {
  std::string content(100000, 'x');
  content[5] = '\0';
  std::ofstream(folder_ / "f", std::ios::binary) << content;
  EXPECT_EQ(*read_file((folder_ / "f").string()), content);
  std::ofstream(folder_ / "f", std::ios::binary | std::ios::trunc).flush();
  EXPECT_EQ(*read_file((folder_ / "f").string()), "");
}

TEST_F(File, WhatIsNoFileIsNamedAndNeverWaitedFor) {
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  fs::create_symlink(folder_ / "pipe", folder_ / "link");
  expect_refused((folder_ / "pipe").string(), StatusCode::kInvalid, "is a named pipe; expected a file");
  expect_refused((folder_ / "link").string(), StatusCode::kInvalid, "is a named pipe; expected a file");
  expect_refused(folder_.string(), StatusCode::kInvalid, "is a folder; expected a file");
  expect_refused("/dev/zero", StatusCode::kInvalid, "is a device; expected a file");
  expect_refused((folder_ / "none").string(), StatusCode::kNotFound, "no such file");
  expect_refused("/proc/self/mem", StatusCode::kInfra, "cannot be read: ");  // opens, but page 0 is not there
}

TEST_F(File, APipeThatAShellHasOpenedIsReadToItsEnd) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ASSERT_EQ(::write(ends[1], "{\"a\": 1}", 8), 8);
  ::close(ends[1]);
  EXPECT_EQ(*read_file("/dev/fd/" + std::to_string(ends[0])), "{\"a\": 1}");
  ::close(ends[0]);
}

}  // namespace
}  // namespace assay
