// The CUDA backend against results that Megatron-LM gave on an H200, and against cpu.
#include <gtest/gtest.h>

#include <filesystem>

#include "backends/cpu/cpu_model.h"
#include "backends/cuda/cuda_model.h"
#include "backends/cuda/testing/on_device.h"
#include "backends/reference/testing/equality_session.h"
#include "backends/reference/testing/vector_case.h"

namespace assay::cuda {
namespace {

const std::string kShared = std::string(ASSAY_SOURCE_DIR) + "/../shared";

class CudaVectors : public OnDevice {
 protected:
  // Tokens, logprobs and, bit for bit, everything that cpu says.
  static void compare(const std::string& root, const std::string& name, double tolerance) {
    auto one = testing::read_case(root, name);
    if (!one && one.status().code() == StatusCode::kUnsupported) return;
    ASSERT_TRUE(one.ok()) << one.status().message();
    if (one->config.arithmetic == model::Arithmetic::kBf16) return;  // exact ties there
    auto cuda = open_cuda(one->config, one->checkpoint, "{}");
    ASSERT_TRUE(cuda.ok()) << cuda.status().message();
    const auto result = testing::run_case(**cuda, *one, 1024);
    ASSERT_TRUE(result.ok()) << result.status().message();
    auto cpu = cpu::open_cpu(one->config, one->checkpoint, "{}");
    ASSERT_TRUE(cpu.ok()) << cpu.status().message();
    const bool equal = testing::Session(**cuda, *one, {}).run() == testing::Session(**cpu, *one, {}).run();
    std::printf("%-44s max |delta| %.2e over %zu logprobs, %zu of %zu tokens, cpu's bits: %s\n", name.c_str(),
                result->max_abs_difference, result->compared, result->tokens_equal, result->tokens,
                equal ? "yes" : "NO");
    EXPECT_TRUE(equal) << name;
    EXPECT_LE(result->max_abs_difference, tolerance) << name;
    EXPECT_EQ(result->tokens_equal, result->tokens) << name;
    EXPECT_GT(result->tokens, 0u) << name;
  }
};

TEST_F(CudaVectors, AgreeWithMegatronAndCpuOnTheSharedVectors) {
  const std::string root = kShared + "/vectors";
  const std::vector<std::string> names = testing::list_cases(root, "_b1");
  if (names.empty()) GTEST_SKIP() << "no cases below " << root;
  for (const std::string& name : names) compare(root, name, 1e-5);
}

// Megatron-LM's own results of batch 1 and batch 4 differ by up to 1.5e-5 on some of these.
TEST_F(CudaVectors, AgreeWithMegatronAndCpuOnFurtherArchitectures) {
  const std::string root = std::string(ASSAY_SOURCE_DIR) + "/../extra_vectors";
  const std::vector<std::string> names = testing::list_cases(root, "_b1");
  if (names.empty()) GTEST_SKIP() << "no cases below " << root;
  for (const std::string& name : names) compare(root, name, 4e-5);
}

TEST_F(CudaVectors, WriteTheLicencesOfTheGoldModelInBothArithmetics) {
  if (!std::filesystem::exists(kShared + "/gold")) GTEST_SKIP() << "no gold model below " << kShared;
  for (const auto arithmetic : {model::Arithmetic::kFp32, model::Arithmetic::kBf16}) {
    auto gold = testing::read_case(kShared + "/gold", "moe_10m_licences_b1");
    ASSERT_TRUE(gold.ok()) << gold.status().message();
    gold->config.arithmetic = arithmetic;
    auto model = open_cuda(gold->config, gold->checkpoint, "{}");
    ASSERT_TRUE(model.ok()) << model.status().message();
    for (const uint32_t chunk : {1024u, 1u}) {
      const auto result = testing::run_case(**model, *gold, chunk);
      ASSERT_TRUE(result.ok()) << result.status().message();
      std::printf("gold, arithmetic %d, chunk %4u: max |delta| %.2e, %zu of %zu tokens\n", static_cast<int>(arithmetic),
                  chunk, result->max_abs_difference, result->tokens_equal, result->tokens);
      EXPECT_EQ(result->tokens, 160u);
      EXPECT_EQ(result->tokens_equal, 160u) << "arithmetic " << static_cast<int>(arithmetic);
    }
  }
}

}  // namespace
}  // namespace assay::cuda
