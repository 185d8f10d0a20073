#include "core/golden/digest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace assay {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr const char* kAbc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";  // FIPS 180-4, "abc"
constexpr const char* kEmpty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

class Digest : public testing::Test {
 protected:
  Digest() : folder_(fs::temp_directory_path() / ("digest_test_" + std::to_string(getpid()))) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~Digest() override { fs::remove_all(folder_); }
  std::string write(const std::string& name, const std::string& text) {
    fs::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return (folder_ / name).string();
  }
  std::string folder() const { return folder_.string(); }
  fs::path folder_;
};

TEST_F(Digest, OfAFileIsSha256OfItsBytes) {
  EXPECT_EQ(*digest_of_file(write("a", "abc")), kAbc);
  EXPECT_EQ(*digest_of_file(write("e", "")), kEmpty);
  // Longer than one piece; the figure is that of sha256sum.
  EXPECT_EQ(*digest_of_file(write("long", std::string(3'000'000, 'x'))),
            "e55b8bdf621ddaa8f462c74745db9680d3bb7536a9cf854f8d6668b34a287890");
}

TEST_F(Digest, OfAFolderCanBeRepeatedWithOrdinaryTools) {
  write("b", "abc");
  write("a/c", "");
  const std::string listing =
      std::string(kEmpty) + " 0 a/c\n" + kAbc + " 3 b\n";  // sorted by name, hash and size of each
  EXPECT_EQ(*digest_of_folder(folder()), *digest_of_text(listing));
}

TEST_F(Digest, OfAFolderDependsOnNamesContentsAndBordersAlone) {
  write("one/a", "xy");
  write("one/b", "z");
  write("two/a", "x");
  write("two/b", "yz");
  write("three/b", "z");
  write("three/a", "xy");
  EXPECT_EQ(*digest_of_folder(folder() + "/one"), *digest_of_folder(folder() + "/three"));
  EXPECT_NE(*digest_of_folder(folder() + "/one"), *digest_of_folder(folder() + "/two"));
  write("three/c", "");
  EXPECT_NE(*digest_of_folder(folder() + "/one"), *digest_of_folder(folder() + "/three"));
}

TEST_F(Digest, OfACheckpointIsThatOfTheIterationItNames) {
  write("ckpt/latest_checkpointed_iteration.txt", "20\n");
  write("ckpt/iter_0000010/w", "old");
  write("ckpt/iter_0000020/w", "new");
  EXPECT_EQ(*digest_of_folder(folder() + "/ckpt"), *digest_of_folder(folder() + "/ckpt/iter_0000020"));
  write("ckpt/latest_checkpointed_iteration.txt", "10");
  EXPECT_EQ(*digest_of_folder(folder() + "/ckpt"), *digest_of_folder(folder() + "/ckpt/iter_0000010"));
  write("ckpt/latest_checkpointed_iteration.txt", "30");
  EXPECT_THAT(digest_of_folder(folder() + "/ckpt").status().message(), HasSubstr("iter_0000030: no such folder"));
  write("ckpt/latest_checkpointed_iteration.txt", "../..");
  EXPECT_THAT(digest_of_folder(folder() + "/ckpt").status().message(), HasSubstr("expected an iteration number"));
}

TEST_F(Digest, WhatHasNoDigestIsNamed) {
  EXPECT_EQ(digest_of_file(folder() + "/none").status().code(), StatusCode::kNotFound);
  EXPECT_EQ(digest_of_folder(folder() + "/none").status().code(), StatusCode::kNotFound);
  EXPECT_EQ(digest_of_file(folder()).status().code(), StatusCode::kInvalid);
  EXPECT_EQ(digest_of_file("/dev/zero").status().code(), StatusCode::kInvalid);
  EXPECT_THAT(digest_of_folder(folder()).status().message(), HasSubstr("holds no file"));
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(digest_of_file(folder() + "/pipe").status().code(), StatusCode::kInvalid) << "and does not wait";
  EXPECT_EQ(digest_of_folder(write("file", "")).status().code(), StatusCode::kInvalid);
}

}  // namespace
}  // namespace assay
