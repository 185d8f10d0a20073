// Whole models on the device: fp32 has the bits of the reference; L1 to L3 bit for bit in both arithmetics.
#include <gmock/gmock.h>

#include "backends/cpu/cpu_model.h"
#include "backends/cuda/cuda_model.h"
#include "backends/cuda/testing/on_device.h"
#include "backends/reference/reference_model.h"
#include "backends/reference/testing/equality_session.h"
#include "backends/reference/testing/odd_models.h"

namespace assay::cuda {
namespace {

using ::testing::HasSubstr;
using testing::Schedule;
using testing::Session;
using testing::Transcript;
using testing::VectorCase;

constexpr auto kArithmetics = {model::Arithmetic::kFp32, model::Arithmetic::kBf16};

class CudaEquality : public OnDevice {
 protected:
  void SetUp() override {
    OnDevice::SetUp();
    if (!IsSkipped()) cases_ = testing::odd_cases();
  }
  void TearDown() override { testing::remove_checkpoints(cases_); }

  std::vector<VectorCase> cases_;
};

// Fails the test and returns null when the model does not open.
std::unique_ptr<backend::Model> open(const VectorCase& vector_case, const char* options = "{}") {
  auto model = open_cuda(vector_case.config, vector_case.checkpoint, options);
  EXPECT_TRUE(model.ok()) << vector_case.name << ": " << model.status().message();
  return model.ok() ? *std::move(model) : nullptr;
}

// What differs first, for a message.
std::string difference(const Transcript& seen, const Transcript& wanted) {
  for (size_t i = 0; i < wanted.logits.size(); ++i) {
    if (const auto same = same_bits(seen.logits[i], wanted.logits[i]); !same) {
      return "logits of sequence " + std::to_string(i) + ": " + same.message();
    }
    if (const auto same = same_bits(seen.logprobs[i], wanted.logprobs[i]); !same) {
      return "logprobs of sequence " + std::to_string(i) + ": " + same.message();
    }
    if (seen.margins[i] != wanted.margins[i]) return "margins of sequence " + std::to_string(i);
  }
  if (seen.ranks != wanted.ranks) return "ranks";
  if (seen.top_ids != wanted.top_ids) return "top ids";
  if (seen.routing != wanted.routing) return "routing";
  return seen.sampled != wanted.sampled ? "draws" : "nothing";
}

Transcript transcript(Result<std::unique_ptr<backend::Model>> model, const VectorCase& one) {
  EXPECT_TRUE(model.ok()) << one.name << ": " << model.status().message();
  return model.ok() ? Session(**model, one, {}).run() : Transcript();
}

// The reference over the short sequences; cpu, whose own tests hold it to the reference, over all of them.
TEST_F(CudaEquality, Fp32GivesTheBitsOfReferenceAndCpu) {
  for (VectorCase one : cases_) {
    one.config.arithmetic = model::Arithmetic::kFp32;
    const auto model = open(one);
    ASSERT_NE(model, nullptr);
    Transcript expected = transcript(cpu::open_cpu(one.config, one.checkpoint, "{}"), one);
    Transcript seen = Session(*model, one, {}).run();
    EXPECT_TRUE(seen == expected) << one.name << ": " << difference(seen, expected);
    one.requests.resize(2);
    expected = transcript(reference::open_reference(one.config, one.checkpoint, "{}"), one);
    seen = Session(*model, one, {}).run();
    EXPECT_TRUE(seen == expected) << one.name << ": " << difference(seen, expected);
  }
}

// Another arithmetic than cpu's, so only close: the largest difference of a logprob is printed.
TEST_F(CudaEquality, Bf16StaysNearCpu) {
  for (VectorCase one : cases_) {
    one.config.arithmetic = model::Arithmetic::kBf16;
    const Transcript expected = transcript(cpu::open_cpu(one.config, one.checkpoint, "{}"), one);
    const auto model = open(one);
    ASSERT_NE(model, nullptr);
    const Transcript seen = Session(*model, one, {}).run();
    double sum = 0;
    size_t count = 0;
    for (size_t i = 0; i < expected.logprobs.size(); ++i) {
      for (size_t t = 0; t < expected.logprobs[i].size(); ++t, ++count) {
        sum += std::abs(static_cast<double>(seen.logprobs[i][t]) - static_cast<double>(expected.logprobs[i][t]));
      }
    }
    std::printf("%-70s mean |delta| of logprobs %.4f over %zu\n", one.name.c_str(), sum / static_cast<double>(count),
                count);
    EXPECT_LT(sum / static_cast<double>(count), 0.05) << one.name;
  }
}

TEST_F(CudaEquality, BatchChunkingAndBlockSizeDoNotChangeABit) {
  for (VectorCase one : cases_) {
    for (const auto arithmetic : kArithmetics) {
      one.config.arithmetic = arithmetic;
      const auto model = open(one);
      ASSERT_NE(model, nullptr);
      const Transcript expected = Session(*model, one, {}).run();
      const Schedule schedules[] = {{1024, false, 16}, {1, false, 16},   {1, true, 7},    {7, true, 1},
                                    {255, true, 64},   {256, false, 16}, {257, true, 256}};
      for (const Schedule& schedule : schedules) {
        const Transcript seen = Session(*model, one, schedule).run();
        EXPECT_TRUE(seen == expected) << one.name << ", arithmetic " << static_cast<int>(arithmetic) << ", chunk "
                                      << schedule.chunk << ", together " << schedule.together << ", blocks of "
                                      << schedule.block_size << ": " << difference(seen, expected);
      }
    }
  }
}

TEST_F(CudaEquality, TheSizeOfASliceDoesNotChangeABit) {
  for (VectorCase one : cases_) {
    for (const auto arithmetic : kArithmetics) {
      one.config.arithmetic = arithmetic;
      const auto whole = open(one);
      ASSERT_NE(whole, nullptr);
      const Transcript expected = Session(*whole, one, {}).run();
      for (const char* options : {R"({"slice":7})", R"({"slice":100})"}) {
        const auto model = open(one, options);
        ASSERT_NE(model, nullptr);
        const Transcript seen = Session(*model, one, {1024, true, 16}).run();
        EXPECT_TRUE(seen == expected) << one.name << ", arithmetic " << static_cast<int>(arithmetic) << ", " << options
                                      << ": " << difference(seen, expected);
      }
    }
  }
}

TEST_F(CudaEquality, ABatchOfAnySizeHasTheBitsOfItsRowsAlone) {
  for (VectorCase one : cases_) {
    for (const auto arithmetic : kArithmetics) {
      one.config.arithmetic = arithmetic;
      const auto model = open(one);
      ASSERT_NE(model, nullptr);
      for (const size_t batch : {1u, 2u, 3u, 7u, 8u, 16u, 33u}) {
        one.requests.clear();
        for (size_t i = 0; i < batch; ++i) {
          one.requests.push_back(
              {testing::some_ids(2 + i % 4, one.config.vocab_size, static_cast<uint32_t>(i)), {}, {}});
        }
        const Transcript expected = Session(*model, one, {1, false, 16}).run();
        for (const uint32_t chunk : {1u, 3u, 1024u}) {
          const Transcript seen = Session(*model, one, {chunk, true, 16}).run();
          EXPECT_TRUE(seen == expected) << one.name << ", arithmetic " << static_cast<int>(arithmetic) << ", batch "
                                        << batch << ", chunk " << chunk << ": " << difference(seen, expected);
        }
      }
    }
  }
}

TEST_F(CudaEquality, ACacheThatDoesNotFitIsRefusedWithBothSizes) {
  const auto model = open(cases_[0]);
  ASSERT_NE(model, nullptr);
  const assay_cache_spec spec{sizeof(spec), 1u << 20, 1u << 20, 0};
  const auto cache = model->make_cache(spec);
  ASSERT_FALSE(cache.ok());
  EXPECT_EQ(cache.status().code(), StatusCode::kExhausted);
  EXPECT_THAT(cache.status().message(), HasSubstr("of device memory needed"));
  EXPECT_THAT(cache.status().message(), HasSubstr("are free"));
  const Transcript after = Session(*model, cases_[0], {}).run();  // and the model still runs
  EXPECT_FALSE(after.logits.empty());
}

// Greedy tokens, ranks and logprobs come from the device's facts where no row of logits is wanted, and are the same.
TEST_F(CudaEquality, WithoutLogitsTheFactsAreTheSame) {
  const VectorCase& one = cases_[0];
  const auto model = open(one);
  ASSERT_NE(model, nullptr);
  const Transcript expected = Session(*model, one, {}).run();
  auto cache = model->make_cache({sizeof(assay_cache_spec), 16, 3, 0});
  ASSERT_TRUE(cache.ok()) << cache.status().message();
  (*cache)->block_size = 16;
  (*cache)->block_count = 3;
  const std::vector<int32_t>& ids = one.requests[1].prompt;
  const std::vector<int32_t> blocks{0, 1, 2};
  std::vector<int32_t> targets(ids.begin() + 1, ids.end());
  targets.push_back(0);
  std::vector<float> logprobs(ids.size());
  std::vector<int32_t> ranks(ids.size());
  int32_t sampled = -1;
  float sampled_logprob = 1;
  assay_run run{};
  run.ids = ids.data();
  run.count = run.output_rows = static_cast<uint32_t>(ids.size());
  run.blocks = blocks.data();
  run.block_count = 3;
  run.targets = targets.data();
  run.sampling = {1, 1, 0, 0, 0, 0};
  run.output.target_logprobs = logprobs.data();
  run.output.target_ranks = ranks.data();
  run.output.sampled = &sampled;
  run.output.sampled_logprob = &sampled_logprob;
  const Status status = model->forward(**cache, {&run, 1}, nullptr);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_TRUE(same_bits(logprobs, expected.logprobs[1]));
  EXPECT_EQ(ranks, expected.ranks[1]);
  const auto vocab = static_cast<ptrdiff_t>(one.config.vocab_size);
  const auto last = expected.logits[1].end() - vocab;
  EXPECT_EQ(sampled, std::max_element(last, last + vocab) - last);
  EXPECT_LT(sampled_logprob, 0);
}

}  // namespace
}  // namespace assay::cuda
