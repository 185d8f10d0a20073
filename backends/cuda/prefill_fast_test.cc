// Option prefill=fast on whole models: what it changes, what it must not change, and which levels it holds.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "backends/cuda/cuda_model.h"
#include "backends/cuda/testing/on_device.h"
#include "backends/cuda/vendor/fast_prefill.h"
#include "backends/reference/testing/equality_session.h"
#include "backends/reference/testing/odd_models.h"

namespace assay::cuda {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using testing::Schedule;
using testing::Session;
using testing::Transcript;
using testing::VectorCase;

const std::string kShared = std::string(ASSAY_SOURCE_DIR) + "/../shared";

// A mixture with heads of 128 channels, its weights made up on the device.
VectorCase mixture(const std::vector<size_t>& lengths) {
  VectorCase one;
  model::ModelConfig& c = one.config;
  c.num_layers = 3;
  c.hidden_size = 256;
  c.ffn_hidden_size = 512;
  c.num_attention_heads = 4;
  c.num_query_groups = 2;
  c.kv_channels = 128;
  c.vocab_size = 512;
  c.max_position_embeddings = 4096;
  c.moe_layers = {false, true, true};
  c.moe.experts = 8;
  c.moe.topk = 2;
  c.moe.ffn_hidden_size = 128;
  c.moe.shared_ffn_hidden_size = 256;
  c.activation = model::Activation::kSwiglu;
  c.norm = model::Norm::kRmsNorm;
  c.linear_bias = false;
  c.tied_embeddings = false;
  c.arithmetic = model::Arithmetic::kBf16;
  for (const size_t length : lengths) {
    one.requests.push_back(
        {testing::some_ids(length, c.vocab_size, static_cast<uint32_t>(one.requests.size())), {}, {}});
  }
  return one;
}

class FastPrefillModel : public OnDevice {
 protected:
  void SetUp() override {
    OnDevice::SetUp();
    if (IsSkipped()) return;
    if (const Status usable = vendor::FastPrefill::usable(true); !usable.ok()) GTEST_SKIP() << usable.message();
  }

  static std::unique_ptr<backend::Model> open(const VectorCase& one, const char* options) {
    auto model = open_cuda(one.config, one.checkpoint, options);
    EXPECT_TRUE(model.ok()) << one.name << ": " << model.status().message();
    return model.ok() ? *std::move(model) : nullptr;
  }

  static Transcript transcript(const VectorCase& one, const char* options, const Schedule& schedule = {}) {
    const auto model = open(one, options);
    return model != nullptr ? Session(*model, one, schedule).run() : Transcript();
  }

  static bool notes_say(const backend::Model& model, const std::string& words) {
    return std::any_of(model.notes().begin(), model.notes().end(),
                       [&](const std::string& note) { return note.find(words) != std::string::npos; });
  }

  static double mean_difference(const Transcript& a, const Transcript& b) {
    double sum = 0;
    size_t count = 0;
    for (size_t i = 0; i < b.logprobs.size(); ++i) {
      for (size_t t = 0; t < b.logprobs[i].size(); ++t, ++count) {
        sum += std::abs(static_cast<double>(a.logprobs[i][t]) - static_cast<double>(b.logprobs[i][t]));
      }
    }
    return sum / static_cast<double>(count);
  }
};

TEST_F(FastPrefillModel, LeavesEveryBitOfFp32ModelsAndOfShortRuns) {
  auto cases = testing::odd_cases();
  for (VectorCase& one : cases) {
    one.config.arithmetic = model::Arithmetic::kFp32;
    const auto fast = open(one, R"({"prefill":"fast"})");
    ASSERT_NE(fast, nullptr);
    EXPECT_EQ(fast->determinism(), backend::kOwnLevels);
    EXPECT_THAT(fast->notes(), Contains(HasSubstr("fp32 arithmetic has no fast kernels")));
    EXPECT_TRUE(Session(*fast, one, {}).run() == transcript(one, "{}")) << one.name;
  }
  testing::remove_checkpoints(cases);
  const VectorCase few = mixture({63, 200});
  const Transcript exact = transcript(few, R"({"weights":"random:3"})");
  for (const uint32_t chunk : {1u, 63u}) {  // runs of fewer than 64 tokens
    EXPECT_TRUE(transcript(few, R"({"weights":"random:3","prefill":"fast"})", {chunk, true, 16}) == exact) << chunk;
  }
}

TEST_F(FastPrefillModel, IsNearExactWithEveryArchitecture) {
  auto cases = testing::odd_cases();
  cases.push_back(mixture({300, 64, 1100}));
  for (VectorCase& one : cases) {
    const bool random = &one == &cases.back();
    one.config.arithmetic = model::Arithmetic::kBf16;
    if (!random) {  // long enough to take the libraries
      const size_t length = std::min<size_t>(200, static_cast<size_t>(one.config.max_position_embeddings));
      ASSERT_GE(length, static_cast<size_t>(vendor::kLeastTokens)) << one.name;
      one.requests = {{testing::some_ids(length, one.config.vocab_size, 1), {}, {}},
                      {testing::some_ids(vendor::kLeastTokens, one.config.vocab_size, 2), {}, {}}};
    }
    const auto fast = open(one, random ? R"({"weights":"random:3","prefill":"fast"})" : R"({"prefill":"fast"})");
    ASSERT_NE(fast, nullptr);
    const Transcript exact = transcript(one, random ? R"({"weights":"random:3"})" : "{}");
    const Transcript seen = Session(*fast, one, {4096, true, 16}).run();
    const double mean = mean_difference(seen, exact);
    std::printf("%-70s mean |delta| of logprobs %.5f, %s\n", one.name.c_str(), mean,
                seen == exact ? "equal bits" : "other bits");
    for (const std::string& note : fast->notes()) std::printf("    %s\n", note.c_str());
    EXPECT_LT(mean, 0.05) << one.name;
    // Up to 256 columns our dot is one chain of tensor core steps, and so is cuBLASLt's.
    if (one.config.hidden_size > 256 || one.config.num_attention_heads * one.config.kv_channels > 256) {
      EXPECT_FALSE(seen == exact) << one.name << ": the libraries were not used";
    }
    EXPECT_EQ(fast->determinism(), uint64_t{ASSAY_CAP_L1});
  }
  cases.pop_back();
  testing::remove_checkpoints(cases);
}

// What a model claims is said of sequences: engines cut them into runs by what else there is, so L1 alone.
TEST_F(FastPrefillModel, RepeatsItselfAndARunHasItsBitsInAnyCompanyWhereRowsAreEqual) {
  const VectorCase one = mixture({64, 300, 1, 63, 1100, 70, 2100, 128});
  for (const char* options :
       {R"({"weights":"random:3","prefill":"fast"})", R"({"weights":"random:3","prefill":"fast","slice":1024})",
        R"({"weights":"random:3","prefill":"fast","slice":200})"}) {
    const auto model = open(one, options);
    ASSERT_NE(model, nullptr);
    const Transcript alone = Session(*model, one, {4096, false, 16}).run();
    EXPECT_TRUE(Session(*model, one, {4096, false, 16}).run() == alone) << options;
    EXPECT_TRUE(transcript(one, options, {4096, false, 64}) == alone) << options << ", opened again";
    EXPECT_EQ(model->determinism(), uint64_t{ASSAY_CAP_L1});
    const bool rows_equal = notes_say(*model, "rows of every product are equal");
    EXPECT_NE(rows_equal, notes_say(*model, "rows differ with their neighbours"));
    const bool equal = Session(*model, one, {4096, true, 16}).run() == alone;
    std::printf("%s: rows are %s, runs together have the bits of runs alone: %s\n", options,
                rows_equal ? "equal" : "not equal", equal ? "yes" : "no");
    if (rows_equal) {
      EXPECT_TRUE(equal) << options;
    }
  }
}

TEST_F(FastPrefillModel, WritesTheLicencesOfTheGoldModel) {
  if (!std::filesystem::exists(kShared + "/gold")) GTEST_SKIP() << "no gold model below " << kShared;
  auto gold = testing::read_case(kShared + "/gold", "moe_10m_licences_b1");
  ASSERT_TRUE(gold.ok()) << gold.status().message();
  gold->config.arithmetic = model::Arithmetic::kBf16;
  const auto model = open(*gold, R"({"prefill":"fast"})");
  ASSERT_NE(model, nullptr);
  const auto result = testing::run_case(*model, *gold, 1024);
  ASSERT_TRUE(result.ok()) << result.status().message();
  std::printf("gold: max |delta| %.2e, %zu of %zu tokens\n", result->max_abs_difference, result->tokens_equal,
              result->tokens);
  EXPECT_EQ(result->tokens, 160u);
  EXPECT_EQ(result->tokens_equal, 160u);
}

}  // namespace
}  // namespace assay::cuda
