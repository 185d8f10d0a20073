// Decode steps by the fast kernels against the kernels of any batch, bit for bit in everything that a model says, on
// models with random weights of the shapes that they take.
#include "backends/cuda/fast_decode.h"

#include <gtest/gtest.h>

#include "backends/cuda/cuda_model.h"
#include "backends/cuda/fast/supports.h"
#include "backends/cuda/testing/on_device.h"
#include "backends/reference/testing/equality_session.h"
#include "backends/reference/testing/odd_models.h"

namespace assay::cuda {
namespace {

using testing::Schedule;
using testing::Session;
using testing::Transcript;
using testing::VectorCase;

constexpr const char* kAuto = R"({"weights":"random:3"})";
constexpr const char* kPlain = R"({"weights":"random:3","decode":"plain"})";

model::ModelConfig shapes(int groups) {
  model::ModelConfig config;
  config.num_layers = 3;
  config.hidden_size = 2048;
  config.ffn_hidden_size = 448;
  config.num_attention_heads = 16;
  config.num_query_groups = groups;
  config.kv_channels = 128;
  config.vocab_size = 4144;
  config.max_position_embeddings = 8192;
  config.rotary_base = 1000000;
  config.norm = model::Norm::kRmsNorm;
  config.activation = model::Activation::kSwiglu;
  config.linear_bias = false;
  config.tied_embeddings = false;
  config.arithmetic = model::Arithmetic::kBf16;
  config.moe_layers = {false, true, true};
  config.moe.experts = 64;
  config.moe.topk = 6;
  config.moe.ffn_hidden_size = 192;
  config.moe.shared_ffn_hidden_size = 320;
  config.moe.score = model::RouterScore::kSigmoid;
  config.moe.expert_bias = true;
  config.moe.scaling_factor = 2.5;
  return config;
}

VectorCase sequences(const model::ModelConfig& config, const std::vector<size_t>& lengths) {
  VectorCase one;
  one.name = std::to_string(config.num_query_groups) + " groups";
  one.config = config;
  for (size_t i = 0; i < lengths.size(); ++i) {
    one.requests.push_back({testing::some_ids(lengths[i], config.vocab_size, static_cast<uint32_t>(i + 1)), {}, {}});
  }
  return one;
}

class FastDecodeModel : public OnDevice {
 protected:
  static std::unique_ptr<backend::Model> open(const model::ModelConfig& config, const char* options) {
    auto model = open_cuda(config, "", options);
    EXPECT_TRUE(model.ok()) << model.status().message();
    return model.ok() ? *std::move(model) : nullptr;
  }
};

TEST(FastDecode, TakesTheModelOfTheseTests) {
  for (const int groups : {16, 4}) EXPECT_EQ(fast::unsupported(shapes(groups)), "");
}

TEST(FastDecode, TakesFewSequencesOfOneTokenAndBlocksOfSixteen) {
  assay_run run{};
  run.count = 1;
  CacheView cache{.block_size = 64};
  EXPECT_TRUE(FastDecode::takes(std::vector<assay_run>(8, run), cache));
  EXPECT_FALSE(FastDecode::takes(std::vector<assay_run>(9, run), cache));
  cache.block_size = 7;
  EXPECT_FALSE(FastDecode::takes({&run, 1}, cache));
  cache.block_size = 16;
  run.count = 2;
  EXPECT_FALSE(FastDecode::takes({&run, 1}, cache));
}

TEST_F(FastDecodeModel, TokenByTokenSaysWhatThePlainKernelsSayOfWholePrompts) {
  for (const int groups : {16, 4}) {
    const VectorCase one = sequences(shapes(groups), {70, 3, 300, 17, 1, 258, 40, 530});
    const auto plain = open(one.config, kPlain);
    const auto fast = open(one.config, kAuto);
    ASSERT_TRUE(plain != nullptr && fast != nullptr);
    const Transcript expected = Session(*plain, one, {1024, false, 16}).run();
    EXPECT_TRUE(Session(*plain, one, {1, true, 16}).run() == expected) << one.name << ", plain token by token";
    for (const Schedule& schedule :
         {Schedule{1, false, 16}, Schedule{1, true, 64}, Schedule{1, false, 256}, Schedule{1, true, 7},
          Schedule{7, true, 16}, Schedule{256, false, 16}, Schedule{257, true, 32}}) {
      EXPECT_TRUE(Session(*fast, one, schedule).run() == expected)
          << one.name << ", chunks of " << schedule.chunk << ", together " << schedule.together << ", blocks of "
          << schedule.block_size;
    }
  }
}

TEST_F(FastDecodeModel, ABatchOfAnySizeHasTheBitsOfItsRowsAlone) {
  const model::ModelConfig config = shapes(16);
  const auto plain = open(config, kPlain);
  const auto fast = open(config, kAuto);
  ASSERT_TRUE(plain != nullptr && fast != nullptr);
  for (const size_t batch : {1u, 2u, 3u, 7u, 8u, 16u, 33u, 64u}) {
    std::vector<size_t> lengths;
    for (size_t i = 0; i < batch; ++i) lengths.push_back(2 + i % 4);
    const VectorCase one = sequences(config, lengths);
    const Transcript expected = Session(*plain, one, {1, false, 16}).run();
    EXPECT_TRUE(Session(*fast, one, {1, false, 16}).run() == expected) << batch << ", one after the other";
    EXPECT_TRUE(Session(*fast, one, {1, true, 16}).run() == expected) << batch << ", together";
  }
}

// Steps over sequences that each have a run of blocks.
class Steps {
 public:
  Steps(backend::Model& model, uint32_t count, uint32_t positions) : model_(model), each_((positions + 63) / 64) {
    auto cache = model.make_cache({sizeof(assay_cache_spec), 64, each_ * count, 0});
    EXPECT_TRUE(cache.ok()) << cache.status().message();
    cache_ = *std::move(cache);
    cache_->block_size = 64;
    cache_->block_count = each_ * count;
    blocks_.resize(size_t{each_} * count);
    for (size_t i = 0; i < blocks_.size(); ++i) blocks_[i] = static_cast<int32_t>(blocks_.size() - 1 - i);
    count_ = count;
  }

  // `tokens` tokens of every sequence from position `start` on; returns the logits of the last ones.
  std::vector<float> forward(uint32_t tokens, uint32_t start) {
    const auto vocab = static_cast<size_t>(model_.config().vocab_size);
    std::vector<float> logits(vocab * count_, -1);
    std::vector<std::vector<int32_t>> ids(count_);
    std::vector<assay_run> runs(count_);
    for (size_t s = 0; s < count_; ++s) {
      ids[s] = testing::some_ids(tokens, model_.config().vocab_size, static_cast<uint32_t>(start + 7 * s + 1));
      runs[s].ids = ids[s].data();
      runs[s].count = tokens;
      runs[s].start = start;
      runs[s].blocks = &blocks_[s * each_];
      runs[s].block_count = each_;
      runs[s].output_rows = 1;
      runs[s].output.logits = &logits[s * vocab];
    }
    const Status status = model_.forward(*cache_, runs, nullptr);
    EXPECT_TRUE(status.ok()) << status.message();
    return logits;
  }

 private:
  backend::Model& model_;
  uint32_t each_;
  size_t count_ = 0;
  std::unique_ptr<backend::Cache> cache_;
  std::vector<int32_t> blocks_;
};

TEST_F(FastDecodeModel, AThousandStepsGiveTheSameBitsEachTime) {
  const model::ModelConfig config = shapes(16);
  const auto fast = open(config, kAuto);
  const auto plain = open(config, kPlain);
  ASSERT_TRUE(fast != nullptr && plain != nullptr);
  for (const uint32_t count : {1u, 3u, 8u}) {
    Steps steps(*fast, count, 320);
    Steps others(*plain, count, 320);
    steps.forward(300, 0);
    others.forward(300, 0);
    const std::vector<float> expected = others.forward(1, 300);
    for (int i = 0; i < 1000; ++i) ASSERT_EQ(steps.forward(1, 300), expected) << count << " sequences, step " << i;
  }
}

// Scratch, table of rotations and graphs are made anew on the way.
TEST_F(FastDecodeModel, LongSequencesOutgrowWhatWasTakenForShortOnes) {
  for (const int groups : {16, 4}) {
    const model::ModelConfig config = shapes(groups);
    const auto fast = open(config, kAuto);
    const auto plain = open(config, kPlain);
    ASSERT_TRUE(fast != nullptr && plain != nullptr);
    for (const uint32_t count : {1u, 2u}) {
      Steps steps(*fast, count, 4224);
      Steps others(*plain, count, 4224);
      EXPECT_EQ(steps.forward(1, 0), others.forward(1, 0));
      for (const uint32_t start : {1u, 2048u}) {
        const uint32_t tokens = start == 1 ? 2047 : 2046;
        EXPECT_EQ(steps.forward(tokens, start), others.forward(tokens, start)) << groups << " groups, prompt";
      }
      for (uint32_t position = 4094; position < 4100; ++position) {
        EXPECT_EQ(steps.forward(1, position), others.forward(1, position)) << groups << " groups, " << position;
      }
    }
  }
}

// A user who mostly takes the likeliest id of each step, and sometimes does anything else.
class Wanderer {
 public:
  static constexpr uint32_t kSequences = 4;
  static constexpr uint32_t kPositions = 240;
  static constexpr uint32_t kBlock = 16;
  static constexpr uint32_t kEach = kPositions / kBlock;

  Wanderer(backend::Model& model, uint32_t seed) : model_(model), random_(seed) { change_cache(); }

  // Everything that one more call says.
  std::vector<float> act() {
    if (chance(3)) change_cache();
    if (chance(15) || chosen_.empty()) choose();
    for (const uint32_t s : chosen_) {
      Sequence& one = sequences_[s];
      if (chance(4) && one.length > 8) one.length -= below(8);
      if (one.length + 20 > kPositions) one.length = 0;
    }
    return forward();
  }

 private:
  struct Sequence {
    uint32_t length = 0;
    int32_t last = 1;
  };

  uint32_t below(uint32_t limit) {
    random_ = random_ * 1664525u + 1013904223u;
    return static_cast<uint32_t>((uint64_t{random_ >> 8} * limit) >> 24);
  }
  bool chance(uint32_t percent) { return below(100) < percent; }

  void choose() {
    chosen_.clear();
    const uint32_t first = below(kSequences);
    const uint32_t count = 1 + below(kSequences);
    for (uint32_t i = 0; i < count; ++i) chosen_.push_back((first + i) % kSequences);
  }

  void change_cache() {
    cache_.reset();
    auto made = model_.make_cache({sizeof(assay_cache_spec), kBlock, kSequences * kEach, 0});
    EXPECT_TRUE(made.ok()) << made.status().message();
    cache_ = *std::move(made);
    cache_->block_size = kBlock;
    cache_->block_count = kSequences * kEach;
    for (uint32_t b = 0; b < kSequences * kEach; ++b) blocks_[b] = static_cast<int32_t>(b * 7 % (kSequences * kEach));
    for (Sequence& one : sequences_) one.length = 0;
  }

  std::vector<float> forward() {
    const auto vocab = static_cast<size_t>(model_.config().vocab_size);
    const size_t count = chosen_.size();
    const bool logits_wanted = chance(15);
    const bool routing_wanted = chance(25);
    const bool greedy = !chance(10);
    const bool targeted = chance(50);
    std::vector<std::vector<int32_t>> ids(count);
    std::vector<int32_t> sampled(count, -1);
    std::vector<float> logprobs(count, 1);
    std::vector<float> target_logprobs(count, 1);
    const std::vector<int32_t> targets(count, chance(10) ? 77 : -1);
    std::vector<float> logits(logits_wanted ? vocab * count : 0, -1);
    std::vector<uint16_t> routing(count * 5 * 2 * 6, 0);
    std::vector<float> margins(count * 5 * 2, -1);
    std::vector<float*> margin_rows(count, nullptr);
    std::vector<assay_run> runs(count);
    for (size_t i = 0; i < count; ++i) {
      const Sequence& one = sequences_[chosen_[i]];
      ids[i].assign(chance(6) ? 5 : 1, one.last);
      if (chance(10)) ids[i][0] = static_cast<int32_t>(below(4000));
      assay_run& run = runs[i];
      run.ids = ids[i].data();
      run.count = static_cast<uint32_t>(ids[i].size());
      run.start = one.length;
      run.blocks = &blocks_[chosen_[i] * kEach];
      run.block_count = kEach;
      run.output_rows = 1;
      run.sampling = greedy ? assay_sampling{1, 1, 0, 0, 0, 0} : assay_sampling{0.9, 0, 0, 0.8, 5, i};
      run.output.sampled = &sampled[i];
      run.output.sampled_logprob = &logprobs[i];
      if (targeted) run.targets = &targets[i];
      if (targeted) run.output.target_logprobs = &target_logprobs[i];
      if (logits_wanted) run.output.logits = &logits[i * vocab];
      if (routing_wanted) run.output.routing = &routing[i * 5 * 2 * 6];
      if (routing_wanted) margin_rows[i] = &margins[i * 5 * 2];
    }
    const Status status = model_.forward(*cache_, runs, margin_rows.data());
    EXPECT_TRUE(status.ok()) << status.message();
    for (size_t i = 0; i < count; ++i) {
      sequences_[chosen_[i]].length += runs[i].count;
      sequences_[chosen_[i]].last = sampled[i];
    }
    std::vector<float> all(sampled.begin(), sampled.end());
    all.insert(all.end(), logprobs.begin(), logprobs.end());
    all.insert(all.end(), target_logprobs.begin(), target_logprobs.end());
    all.insert(all.end(), logits.begin(), logits.end());
    all.insert(all.end(), routing.begin(), routing.end());
    all.insert(all.end(), margins.begin(), margins.end());
    return all;
  }

  backend::Model& model_;
  uint32_t random_;
  std::unique_ptr<backend::Cache> cache_;
  std::array<int32_t, kSequences * kEach> blocks_{};
  std::array<Sequence, kSequences> sequences_;
  std::vector<uint32_t> chosen_;
};

TEST_F(FastDecodeModel, WhateverComesBetweenStepsTheyAreThoseOfThePlainKernels) {
  for (const int groups : {16, 4}) {
    const model::ModelConfig config = shapes(groups);
    const auto fast = open(config, kAuto);
    const auto plain = open(config, kPlain);
    ASSERT_TRUE(fast != nullptr && plain != nullptr);
    Wanderer wanderer(*fast, 5);
    Wanderer other(*plain, 5);
    for (int i = 0; i < 400; ++i) ASSERT_TRUE(same_bits(wanderer.act(), other.act())) << groups << " groups, " << i;
  }
}

}  // namespace
}  // namespace assay::cuda
