// The reference against results that Megatron-LM gave on an H200.
#include <gtest/gtest.h>

#include <filesystem>

#include "backends/reference/reference_model.h"
#include "backends/reference/testing/vector_case.h"

namespace assay::reference {
namespace {

const std::string kShared = std::string(ASSAY_SOURCE_DIR) + "/../shared";

testing::VectorResult run(const std::string& root, const std::string& name, model::Arithmetic arithmetic) {
  auto vector_case = testing::read_case(root, name);
  EXPECT_TRUE(vector_case.ok()) << vector_case.status().message();
  if (!vector_case) return {};
  vector_case->config.arithmetic = arithmetic;
  auto model = open_reference(vector_case->config, vector_case->checkpoint, "{}");
  EXPECT_TRUE(model.ok()) << model.status().message();
  if (!model) return {};
  auto result = testing::run_case(**model, *vector_case, 1024);
  EXPECT_TRUE(result.ok()) << result.status().message();
  return result.ok() ? *result : testing::VectorResult{};
}

// `tolerance`: Megatron-LM's own results of batch 1 and batch 4 differ by up to 1.5e-5 on some of these models.
void expect_equal_to_megatron(const std::string& root, double tolerance) {
  const std::vector<std::string> names = testing::list_cases(root, "_b1");
  if (names.empty()) GTEST_SKIP() << "no cases below " << root;
  for (const std::string& name : names) {
    auto vector_case = testing::read_case(root, name);
    if (!vector_case && vector_case.status().code() == StatusCode::kUnsupported) continue;
    ASSERT_TRUE(vector_case.ok()) << vector_case.status().message();
    if (vector_case->config.arithmetic == model::Arithmetic::kBf16) continue;
    const testing::VectorResult result = run(root, name, model::Arithmetic::kFp32);
    std::printf("%-44s max |delta| %.2e over %zu logprobs, %zu of %zu tokens\n", name.c_str(),
                result.max_abs_difference, result.compared, result.tokens_equal, result.tokens);
    EXPECT_LE(result.max_abs_difference, tolerance) << name;
    EXPECT_EQ(result.tokens_equal, result.tokens) << name;
    EXPECT_GT(result.tokens, 0u) << name;
  }
}

TEST(Reference, AgreesWithMegatronOnTheSharedVectors) { expect_equal_to_megatron(kShared + "/vectors", 1e-5); }

TEST(Reference, AgreesWithMegatronOnFurtherArchitectures) {
  expect_equal_to_megatron(std::string(ASSAY_SOURCE_DIR) + "/../extra_vectors", 4e-5);
}

TEST(Reference, WritesTheLicencesOfTheGoldModelInBothArithmetics) {
  if (!std::filesystem::exists(kShared + "/gold")) GTEST_SKIP() << "no gold model below " << kShared;
  for (const auto arithmetic : {model::Arithmetic::kFp32, model::Arithmetic::kBf16}) {
    const testing::VectorResult result = run(kShared + "/gold", "moe_10m_licences_b1", arithmetic);
    EXPECT_EQ(result.tokens, 160u);
    EXPECT_EQ(result.tokens_equal, 160u) << "arithmetic " << static_cast<int>(arithmetic);
  }
}

}  // namespace
}  // namespace assay::reference
