#include "core/train/gradients.h"

#include <gmock/gmock.h>

#include <cstring>
#include <filesystem>
#include <functional>
#include <iterator>
#include <numeric>
#include <thread>

#include "backends/model/checkpoint/torch_dist_writer.h"
#include "core/train/meeting.h"
#include "tests/temporary_folder.h"

namespace assay::train {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

class Gradients : public testing::Test {
 protected:
  using Shape = std::vector<int64_t>;

  static model::TensorToWrite tensor(const std::string& key, Shape shape, std::vector<float> values) {
    model::TensorToWrite tensor;
    tensor.key = key;
    tensor.shape = std::move(shape);
    tensor.dtype = model::Dtype::kFloat32;
    tensor.fill = [values = std::move(values)](int64_t first, int64_t count, void* out) {
      std::memcpy(out, values.data() + first, static_cast<size_t>(count) * sizeof(float));
    };
    return tensor;
  }
  std::string save(const std::string& name, const std::vector<model::TensorToWrite>& tensors) {
    const Status written = model::write_torch_dist((root_ / name).string(), tensors, {}, {});
    EXPECT_TRUE(written.ok()) << written.message();
    return (root_ / name / "iter_0000001").string();
  }
  // A checkpoint of one tensor.
  std::string save(const std::string& name, const std::string& key, Shape shape, std::vector<float> values) {
    return save(name, {tensor(key, std::move(shape), std::move(values))});
  }
  // One of a weight of this shape and of its state, whose values are 1, 2, 3 ... unless given.
  std::string save_state(const std::string& name, const std::string& weight, const Shape& shape, const Shape& state,
                         std::vector<float> values = {}) {
    const auto count = [](const Shape& sizes) {
      return static_cast<size_t>(std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>()));
    };
    if (values.empty()) {
      values.resize(count(state));
      std::iota(values.begin(), values.end(), 1.0F);
    }
    return save(name, {tensor(weight, shape, std::vector<float>(count(shape))),
                       tensor("optimizer.state.exp_avg." + weight, state, std::move(values))});
  }

  const tests::TemporaryFolder folder_;
  const fs::path& root_ = folder_.path();
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

constexpr const char* kRows = "decoder.layers.mlp.linear_fc2.weight";

TEST_F(Gradients, StatesOfTensorParallelRanksAreComparedWithWholeOnesInBothDirections) {
  // Two rows of four columns, (1 2 3 4) and (5 6 7 8).
  const std::string whole = save_state("whole", kRows, {1, 2, 4}, {1, 1, 1, 8});
  const std::string ranks = save_state("ranks", kRows, {1, 2, 4}, {1, 1, 2, 4}, {1, 2, 5, 6, 3, 4, 7, 8});
  EXPECT_EQ(judge_checkpoints({whole, ranks}).verdict, Verdict::kIdentical) << judge_checkpoints({whole, ranks}).reason;
  EXPECT_EQ(judge_checkpoints({ranks, whole}).verdict, Verdict::kIdentical) << judge_checkpoints({ranks, whole}).reason;
  const std::string other = save_state("other", kRows, {1, 2, 4}, {1, 1, 2, 4});
  EXPECT_EQ(judge_checkpoints({whole, other}).verdict, Verdict::kDiverged);
  EXPECT_EQ(judge_checkpoints({other, whole}).verdict, Verdict::kDiverged);
}

TEST_F(Gradients, AStateThatIsNotOfItsWeightsSizeIsInvalidInsteadOfRead) {
  struct {
    const char* key;
    Shape weight_a, state_a, weight_b, state_b;
  } const cases[] = {
      {kRows, {4, 8, 4}, {1, 1, 1, 8}, {4, 8, 4}, {1, 1, 2, 4}},                // both states are too small
      {kRows, {1, 2, 4}, {1, 1, 1, 8}, {1, 2, 4}, {1, 1, 2, 8}},                // one is too large
      {kRows, {1, 2, 4}, {1, 1, 1, 16}, {1, 2, 4}, {1, 1, 2, 8}},               // both are
      {kRows, {1, 2, 4}, {1, 1, 1, 8}, {1, 2, 4}, {1, 1, 8, 1}},                // more ranks than columns
      {kRows, {1, 2, 4}, {1, 1, 1, 8}, {1, 2, 4}, {1, 2, 4}},                   // fine: the state is whole
      {"decoder.layers.norm.weight", {2, 3}, {2, 1, 2}, {2, 3}, {2, 1, 1, 2}},  // not row-parallel
      {"embedding.word_embeddings.weight", {4, 2}, {1, 1, 12}, {6, 2}, {1, 1, 1, 12}},
  };
  for (size_t i = 0; i < std::size(cases); ++i) {
    const auto& [key, weight_a, state_a, weight_b, state_b] = cases[i];
    const std::string a = save_state("a" + std::to_string(i), key, weight_a, state_a);
    const std::string b = save_state("b" + std::to_string(i), key, weight_b, state_b);
    const bool fine = i == 4;
    for (const CaseVerdict& judged : {judge_checkpoints({a, b}), judge_checkpoints({b, a})}) {
      EXPECT_EQ(judged.verdict, fine ? Verdict::kIdentical : Verdict::kInvalid) << i << ": " << judged.reason;
      if (!fine) {
        EXPECT_THAT(judged.reason, HasSubstr("shapes ")) << i;
      }
    }
  }
}

TEST_F(Gradients, PaddingOfTheVocabularyIsLeftOut) {
  const char* key = "embedding.word_embeddings.weight";
  const std::string a = save_state("a", key, {2, 2}, {1, 1, 4}, {1, 2, 3, 4});
  const std::string b = save_state("b", key, {3, 2}, {1, 1, 6}, {1, 2, 3, 4, 99, 99});
  EXPECT_EQ(judge_checkpoints({a, b}).verdict, Verdict::kIdentical);
  EXPECT_EQ(judge_checkpoints({b, a}).verdict, Verdict::kIdentical);
}

TEST_F(Gradients, PaddingOfTheOutputLayerIsLeftOut) {
  const std::string a = save_state("a", "output_layer.weight", {2, 2}, {1, 1, 4}, {1, 2, 3, 4});
  const std::string b = save_state("b", "output_layer.weight", {3, 2}, {1, 1, 6}, {1, 2, 3, 4, 99, 99});
  EXPECT_EQ(judge_checkpoints({a, b}).verdict, Verdict::kIdentical) << judge_checkpoints({a, b}).reason;
}

TEST_F(Gradients, TheirVerdictIsNoCopyOfOurs) {
  const auto expect = [](const std::vector<std::string>& folders, bool ours, bool theirs) {
    const GradientVerdicts judged = judge_checkpoints_twice(folders);
    EXPECT_EQ(passes(judged.ours.verdict), ours) << judged.ours.reason;
    EXPECT_EQ(judged.theirs.passes(), theirs) << judged.theirs.message;
  };
  const std::string whole = save_state("whole", kRows, {1, 2, 4}, {1, 1, 1, 8});
  const std::string ranks = save_state("ranks", kRows, {1, 2, 4}, {1, 1, 2, 4}, {1, 2, 5, 6, 3, 4, 7, 8});
  expect({whole, ranks}, true, true);
  expect({ranks, whole}, true, false);  // they bring the right side in order alone
  model::TensorToWrite half = tensor(kKey, {1, 2}, {});
  half.dtype = model::Dtype::kBfloat16;
  half.fill = [](int64_t first, int64_t count, void* out) {
    constexpr uint16_t kOneAndTwo[] = {0x3f80, 0x4000};
    std::memcpy(out, kOneAndTwo + first, static_cast<size_t>(count) * sizeof(uint16_t));
  };
  const std::string single = save("single", kKey, {1, 2}, {1, 2});
  expect({single, save("half", {half})}, true, false);  // they tell types apart
  const std::string words = "embedding.word_embeddings.weight";
  const auto with_words = [&](const std::string& name, const Shape& state, size_t count) {
    return save(name, {tensor(kKey, {1, 2}, {1, 2}), tensor(words, {2, 2}, {0, 0, 0, 0}),
                       tensor("optimizer.state.exp_avg." + words, state, std::vector<float>(count, 1.0F))});
  };
  expect({with_words("words", {1, 1, 4}, 4), with_words("more", {1, 2, 3}, 6)}, false, true);  // they pass over it
  expect({single}, false, false);
  expect({single, (root_ / "none").string()}, false, false);
  expect({single, save("other", "optimizer.state.exp_avg.other", {1, 2}, {1, 2})}, false, false);
  expect({single, single, save("far", kKey, {1, 2}, {1, 3})}, false, false);
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
