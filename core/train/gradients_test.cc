#include "core/train/gradients.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <thread>

#include "backends/model/checkpoint/torch_dist_writer.h"
#include "core/train/meeting.h"

namespace assay::train {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

class Gradients : public testing::Test {
 protected:
  void SetUp() override {
    fs::remove_all(root_);
    fs::create_directories(root_);
  }
  void TearDown() override { fs::remove_all(root_); }

  // A checkpoint of one tensor.
  std::string save(const std::string& name, const std::string& key, std::vector<int64_t> shape,
                   std::vector<float> values) {
    const fs::path folder = root_ / name;
    model::TensorToWrite tensor;
    tensor.key = key;
    tensor.shape = std::move(shape);
    tensor.dtype = model::Dtype::kFloat32;
    tensor.fill = [values](int64_t first, int64_t count, void* out) {
      std::memcpy(out, values.data() + first, static_cast<size_t>(count) * sizeof(float));
    };
    const Status written = model::write_torch_dist(folder.string(), {tensor}, {}, {});
    EXPECT_TRUE(written.ok()) << written.message();
    return (folder / "iter_0000001").string();
  }
  const fs::path root_ = fs::path(testing::TempDir()) / ("gradients_" + std::to_string(::getpid()));
};

constexpr const char* kKey = "optimizer.state.exp_avg.decoder.layers.mlp.linear_fc1.weight";

TEST(UnshardRows, PutsTheColumnsOfEveryRankSideBySide) {
  // Two rows of four columns over two ranks: rank 0 has columns 0 and 1.
  EXPECT_THAT(unshard_rows({0, 1, 10, 11, 2, 3, 12, 13}, {.outer = 1, .tp = 2, .rows = 2, .columns = 4}),
              ElementsAre(0, 1, 2, 3, 10, 11, 12, 13));
}

TEST_F(Gradients, AreComparedByTheirRelativeDifference) {
  const std::string a = save("a", kKey, {1, 4}, {1, 2, 3, 4});
  EXPECT_EQ(judge_checkpoints({a, save("b", kKey, {1, 4}, {1, 2, 3, 4})}).verdict, Verdict::kIdentical);
  EXPECT_EQ(judge_checkpoints({a, save("c", kKey, {1, 4}, {1, 2, 3, 4.2F})}).verdict, Verdict::kEquivalent);
  const CaseVerdict far = judge_checkpoints({a, save("d", kKey, {1, 4}, {1, 2, 3, 5})});
  EXPECT_EQ(far.verdict, Verdict::kDiverged);
  EXPECT_THAT(far.reason, HasSubstr("linear_fc1.weight"));
  EXPECT_THAT(far.reason, HasSubstr("the bound is 0.0829"));
}

TEST_F(Gradients, NothingToCompareIsInvalid) {
  const std::string a = save("a", kKey, {1, 2}, {1, 2});
  EXPECT_EQ(judge_checkpoints({a}).verdict, Verdict::kInvalid);
  EXPECT_EQ(judge_checkpoints({a, (root_ / "none").string()}).verdict, Verdict::kInvalid);
  EXPECT_EQ(judge_checkpoints({a, save("b", "decoder.weight", {1, 2}, {1, 2})}).verdict, Verdict::kInvalid);
  EXPECT_EQ(judge_checkpoints({a, save("c", kKey, {1, 3}, {1, 2, 3})}).verdict, Verdict::kInvalid);
  const std::string zero = save("d", kKey, {1, 2}, {0, 0});
  EXPECT_THAT(judge_checkpoints({zero, save("e", kKey, {1, 2}, {0, 0})}).reason, HasSubstr("zero"));
  EXPECT_THAT(judge_checkpoints({a, save("f", kKey, {1, 2}, {1, NAN})}).reason, HasSubstr("no finite number"));
}

TEST_F(Gradients, NodesMeet) {
  const NodeMeeting where{.folder = (root_ / "meeting").string(), .seconds = 20};
  Result<int> other = 0;
  std::thread second([&] { other = Meeting(where, 2, 1, {}).exchange("phase", 3); });
  const Result<int> first = Meeting(where, 2, 0, {}).exchange("phase", 0);
  second.join();
  ASSERT_TRUE(first.ok()) << first.status().message();
  EXPECT_EQ(*first, 3) << "one that fails, fails for all";
  EXPECT_EQ(*other, 3);
  EXPECT_EQ(*Meeting({}, 1, 0, {}).exchange("phase", 5), 5);
}

TEST_F(Gradients, ANodeThatDoesNotComeIsNamed) {
  const Status alone = Meeting({.folder = root_.string(), .seconds = 0.1}, 3, 1, {}).wait("start");
  EXPECT_EQ(alone.code(), StatusCode::kInfra);
  EXPECT_THAT(alone.message(), HasSubstr("1 of 3 nodes came within 0.1 s, missing: 0, 2"));
  EXPECT_EQ(Meeting({.folder = root_.string(), .seconds = 99}, 2, 0, [] { return true; }).wait("other").code(),
            StatusCode::kCancelled);
}

}  // namespace
}  // namespace assay::train
