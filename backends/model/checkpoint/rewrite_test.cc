#include "backends/model/checkpoint/rewrite.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "backends/model/checkpoint/torch_dist_writer.h"

namespace assay::model {
namespace {

namespace fs = std::filesystem;

class Rewrite : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::path(ASSAY_BINARY_DIR) / "tests" / "scratch" / (std::string("rewrite_") + info->name());
    fs::remove_all(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::unique_ptr<Checkpoint> open(const char* name) const {
    Result<std::unique_ptr<Checkpoint>> checkpoint = Checkpoint::open((folder_ / name).string());
    EXPECT_TRUE(checkpoint.ok()) << checkpoint.status().message();
    return checkpoint.ok() ? *std::move(checkpoint) : nullptr;
  }

  fs::path folder_;
};

TensorToWrite counting(std::string key, std::vector<int64_t> shape, std::vector<int64_t> counts) {
  const auto fill = [](int64_t first, int64_t count, void* out) {
    auto* values = static_cast<uint16_t*>(out);
    for (int64_t i = 0; i < count; ++i) values[i] = static_cast<uint16_t>((first + i) * 7919);
  };
  return {std::move(key), std::move(shape), Dtype::kBfloat16, std::move(counts), fill};
}

std::vector<uint16_t> all_of(const Checkpoint& checkpoint, const TensorInfo& tensor) {
  std::vector<uint16_t> values(static_cast<size_t>(tensor.elements()));
  EXPECT_TRUE(checkpoint.read(tensor.key, {}, Dtype::kBfloat16, values.data()).ok()) << tensor.key;
  return values;
}

TEST_F(Rewrite, EveryBitStaysWhileChunksFilesAndPlaceOfTheArgumentsChange) {
  const std::vector<TensorToWrite> tensors = {counting("one", {5}, {1}), counting("cube", {3, 130, 257}, {3, 1, 2}),
                                              counting("grid", {2, 3}, {2, 3}), counting("empty", {0, 4}, {}),
                                              counting("scalar", {}, {})};
  ArgRecord args;
  args["num_layers"] = {int64_t{3}};
  for (const bool common : {false, true}) {
    ASSERT_TRUE(write_torch_dist((folder_ / "old").string(), tensors, args, {.files = 2, .common_pt = common}).ok());
    const auto old = open("old");
    ASSERT_NE(old, nullptr);
    const Status done = rewrite_checkpoint(*old, (folder_ / "new").string());
    ASSERT_TRUE(done.ok()) << done.message();
    const auto fresh = open("new");
    ASSERT_NE(fresh, nullptr);
    EXPECT_TRUE(fresh->verify().ok());
    EXPECT_EQ(fresh->contents().files.size(), 3u);
    ASSERT_EQ(fresh->contents().tensors.size(), tensors.size());
    const Result<ArgRecord> copied = fresh->args();
    ASSERT_TRUE(copied.ok() && copied->count("num_layers") == 1);
    EXPECT_EQ(std::get<int64_t>(copied->at("num_layers").value), 3);
    EXPECT_EQ(fs::exists(fs::path(fresh->contents().path) / "common.pt"), !common);
    for (const TensorInfo& tensor : old->contents().tensors) {
      const TensorInfo* written = fresh->contents().find(tensor.key);
      ASSERT_NE(written, nullptr) << tensor.key;
      EXPECT_EQ(all_of(*fresh, *written), all_of(*old, tensor)) << tensor.key;
      if (tensor.elements() > 1) {
        EXPECT_NE(written->chunks.size(), tensor.chunks.size()) << tensor.key;
      }
    }
    fs::remove_all(folder_ / "new");
  }
  EXPECT_EQ(rewritten_bytes(*open("old")), 2u * (5 + 3 * 130 * 257 + 6 + 1));
}

TEST_F(Rewrite, AFileWithAWrongChecksumIsNamedInsteadOfCopied) {
  ASSERT_TRUE(write_torch_dist((folder_ / "old").string(), {counting("w", {64, 64}, {})}, {}, {}).ok());
  fs::path data;
  for (const auto& entry : fs::recursive_directory_iterator(folder_ / "old")) {
    if (entry.path().extension() == ".distcp") data = entry.path();
  }
  std::FILE* file = std::fopen(data.c_str(), "r+b");
  ASSERT_NE(file, nullptr);
  std::fseek(file, 2000, SEEK_SET);
  std::fputc(0x5a, file);
  std::fclose(file);
  const auto old = open("old");
  ASSERT_NE(old, nullptr);
  const Status done = rewrite_checkpoint(*old, (folder_ / "new").string());
  EXPECT_EQ(done.code(), StatusCode::kInvalid);
  EXPECT_NE(done.message().find("__0_0.distcp: 'w': CRC-32 "), std::string::npos) << done.message();
}

}  // namespace
}  // namespace assay::model
