// L1 to L3 and reference == cpu, bit for bit, on whole models.
#include <gmock/gmock.h>

#include "backends/cpu/cpu_model.h"
#include "backends/cpu/kernels/kernels.h"
#include "backends/reference/reference_model.h"
#include "backends/reference/testing/equality_session.h"
#include "backends/reference/testing/odd_models.h"

namespace assay::cpu {
namespace {

using ::testing::HasSubstr;
using testing::Schedule;
using testing::Session;
using testing::some_ids;
using testing::Transcript;

std::string options(std::string_view isa, int threads) {
  return R"({"isa":")" + std::string(isa) + R"(","threads":)" + std::to_string(threads) +
         R"(,"parallel_from":1})";  // even the smallest operator is cut up
}

// Fails the test and returns an empty transcript when the model does not open.
Transcript transcript(const testing::VectorCase& vector_case, const std::string& opts, const Schedule& schedule) {
  auto model = open_cpu(vector_case.config, vector_case.checkpoint, opts);
  EXPECT_TRUE(model.ok()) << model.status().message();
  if (!model) return {};
  return Session(**model, vector_case, schedule).run();
}

// What was asked for was written: every margin, and some of them above zero.
bool margins_are_plausible(const Transcript& t) {
  size_t positive = 0;
  size_t wrong = 0;
  for (const auto& margins : t.margins) {
    for (const float margin : margins) {
      positive += margin > 0;
      wrong += !(margin >= 0);
    }
  }
  return wrong == 0 && (positive > 0 || t.margins.front().empty());
}

// Every model in both arithmetics against the reference, once an instruction set.
TEST(CpuEquality, EveryIsaGivesTheBitsOfTheReference) {
  const auto all = testing::odd_cases();
  for (testing::VectorCase vector_case : all) {
    for (const auto arithmetic : {model::Arithmetic::kFp32, model::Arithmetic::kBf16}) {
      vector_case.config.arithmetic = arithmetic;
      auto reference = reference::open_reference(vector_case.config, vector_case.checkpoint, "{}");
      ASSERT_TRUE(reference.ok()) << reference.status().message();
      const Transcript expected = Session(**reference, vector_case, {}).run();
      EXPECT_TRUE(margins_are_plausible(expected)) << vector_case.name;
      for (const std::string_view isa : built_isas()) {
        if (!can_run(isa)) continue;
        if (isa == "scalar" && arithmetic == model::Arithmetic::kFp32) continue;  // slow, one arithmetic is enough
        EXPECT_TRUE(transcript(vector_case, options(isa, 2), {}) == expected)
            << vector_case.name << ", isa " << isa << ", arithmetic " << static_cast<int>(arithmetic);
      }
    }
  }
  testing::remove_checkpoints(all);
}

TEST(CpuEquality, BatchChunkingThreadsAndBlockSizeDoNotChangeABit) {
  const auto all = testing::odd_cases();
  for (testing::VectorCase vector_case : all) {
    for (const auto arithmetic : {model::Arithmetic::kFp32, model::Arithmetic::kBf16}) {
      vector_case.config.arithmetic = arithmetic;
      const Transcript expected = transcript(vector_case, options("auto", 1), {});
      const std::pair<int, Schedule> variants[] = {{1, {1, false, 16}},   {2, {1, true, 16}},    {3, {5, true, 7}},
                                                   {2, {1024, true, 64}}, {4, {13, false, 256}}, {2, {64, true, 1}}};
      for (const auto& [threads, schedule] : variants) {
        EXPECT_TRUE(transcript(vector_case, options("auto", threads), schedule) == expected)
            << vector_case.name << ": " << threads << " threads, chunk " << schedule.chunk << ", together "
            << schedule.together << ", blocks of " << schedule.block_size;
      }
    }
  }
  testing::remove_checkpoints(all);
}

// L2 and L3 once an instruction set: sequences one by one, token by token, against batches that cross every tile.
TEST(CpuEquality, EveryIsaGivesABatchOfAnySizeTheBitsOfItsRowsAlone) {
  const auto all = testing::odd_cases();
  for (testing::VectorCase vector_case : all) {
    vector_case.config.arithmetic = model::Arithmetic::kBf16;
    for (const std::string_view isa : built_isas()) {
      if (!can_run(isa)) continue;
      for (const size_t batch : {1u, 2u, 3u, 7u, 8u, 16u, 33u}) {
        vector_case.requests.clear();
        for (size_t i = 0; i < batch; ++i) {
          const size_t count = 2 + i % 4;
          vector_case.requests.push_back(
              {some_ids(count, vector_case.config.vocab_size, static_cast<uint32_t>(i)), {}, {}});
        }
        const Transcript expected = transcript(vector_case, options(isa, 1), {1, false, 16});
        for (const uint32_t chunk : {1u, 3u, 1024u}) {
          EXPECT_TRUE(transcript(vector_case, options(isa, 2), {chunk, true, 16}) == expected)
              << vector_case.name << ", isa " << isa << ", batch " << batch << ", chunk " << chunk;
        }
      }
    }
  }
  testing::remove_checkpoints(all);
}

TEST(CpuModel, WrongOptionsAreNamed) {
  const model::ModelConfig config;
  EXPECT_THAT(open_cpu(config, "/nowhere", R"({"isa":"vax"})").status().message(), HasSubstr("isa 'vax' is unknown"));
  EXPECT_THAT(open_cpu(config, "/nowhere", R"({"threads":-1})").status().message(), HasSubstr("'threads': -1"));
  EXPECT_FALSE(open_cpu(config, "/nowhere", "{}").ok());
}

TEST(CpuModel, ACacheThatDoesNotFitIsRefusedWithBothSizes) {
  const auto all = testing::odd_cases();
  auto model = open_cpu(all[0].config, all[0].checkpoint, "{}");
  ASSERT_TRUE(model.ok()) << model.status().message();
  const assay_cache_spec spec{sizeof(spec), 1u << 20, 1u << 20, 0};
  const auto cache = (*model)->make_cache(spec);
  ASSERT_FALSE(cache.ok());
  EXPECT_EQ(cache.status().code(), StatusCode::kExhausted);
  EXPECT_THAT(cache.status().message(), HasSubstr("GB needed"));
  testing::remove_checkpoints(all);
}

}  // namespace
}  // namespace assay::cpu
