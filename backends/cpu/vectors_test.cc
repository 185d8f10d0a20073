// The CPU backend against results that Megatron-LM gave on an H200.
#include <gtest/gtest.h>

#include <filesystem>

#include "backends/cpu/cpu_model.h"
#include "backends/reference/testing/vector_case.h"

namespace assay::cpu {
namespace {

const std::string kShared = std::string(ASSAY_SOURCE_DIR) + "/../shared";

testing::VectorResult run(const std::string& root, const std::string& name, model::Arithmetic arithmetic) {
  auto vector_case = testing::read_case(root, name);
  EXPECT_TRUE(vector_case.ok()) << vector_case.status().message();
  if (!vector_case) return {};
  vector_case->config.arithmetic = arithmetic;
  auto model = open_cpu(vector_case->config, vector_case->checkpoint, "{}");
  EXPECT_TRUE(model.ok()) << model.status().message();
  if (!model) return {};
  auto result = testing::run_case(**model, *vector_case, 1024);
  EXPECT_TRUE(result.ok()) << result.status().message();
  return result.ok() ? *result : testing::VectorResult{};
}

TEST(Cpu, AgreesWithMegatronOnTheSharedVectors) {
  const std::string root = kShared + "/vectors";
  const std::vector<std::string> names = testing::list_cases(root, "_b1");
  if (names.empty()) GTEST_SKIP() << "no cases below " << root;
  for (const std::string& name : names) {
    auto vector_case = testing::read_case(root, name);
    if (!vector_case && vector_case.status().code() == StatusCode::kUnsupported) continue;
    ASSERT_TRUE(vector_case.ok()) << vector_case.status().message();
    if (vector_case->config.arithmetic == model::Arithmetic::kBf16) continue;  // exact ties there
    const testing::VectorResult result = run(root, name, model::Arithmetic::kFp32);
    std::printf("%-30s max |delta| %.2e over %zu logprobs\n", name.c_str(), result.max_abs_difference, result.compared);
    EXPECT_LE(result.max_abs_difference, 1e-5) << name;
    EXPECT_EQ(result.tokens_equal, result.tokens) << name;
    EXPECT_GT(result.tokens, 0u) << name;
  }
}

TEST(Cpu, WritesTheLicencesOfTheGoldModelInBothArithmetics) {
  if (!std::filesystem::exists(kShared + "/gold")) GTEST_SKIP() << "no gold model below " << kShared;
  for (const auto arithmetic : {model::Arithmetic::kFp32, model::Arithmetic::kBf16}) {
    const testing::VectorResult result = run(kShared + "/gold", "moe_10m_licences_b1", arithmetic);
    EXPECT_EQ(result.tokens, 160u);
    EXPECT_EQ(result.tokens_equal, 160u) << "arithmetic " << static_cast<int>(arithmetic);
  }
}

}  // namespace
}  // namespace assay::cpu
