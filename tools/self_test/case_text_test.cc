#include "tools/self_test/case_text.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "core/discover/discover.h"

namespace assay::self_test {
namespace {

using testing::ElementsAre;

constexpr const char* kBase = ASSAY_SOURCE_DIR "/testcases/moe/moe_10m_licences_fp32_b4";

TestCase read_one(const std::string& path) {
  const auto cases = discover::discover({path});
  EXPECT_TRUE(cases.ok() && cases->size() == 1);
  return cases->at(0);
}

std::string argument(const TestCase& test, const std::string& name) {
  for (const ModelArg& one : test.model_args.entries) {
    if (one.key == name) return one.text;
  }
  return "absent";
}

TEST(CaseText, MeansTheSameAsItsBaseButForTheChange) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("case_text_test_" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  const TestCase base = read_one(kBase);
  std::ofstream(folder / "model_config.yaml") << case_text(base, {.metrics = {"logprobs", "tpot"},
                                                                  .arguments = {{"--seed", "7"}, {"--top_k", "3"}},
                                                                  .env_vars = {{"NCCL_ALGO", "Tree"}},
                                                                  .timeout_s = 2.5,
                                                                  .memory_limit = 1048576});
  const TestCase made = read_one(folder.string());
  std::filesystem::remove_all(folder);
  ASSERT_TRUE(made.error.ok()) << made.error.message();
  EXPECT_THAT(*made.metrics, ElementsAre("logprobs", "tpot"));
  EXPECT_EQ(argument(made, "--seed"), "7");
  EXPECT_EQ(argument(made, "--top_k"), "3");
  for (const ModelArg& one : base.model_args.entries) {
    if (one.key == "--top_k") continue;
    const std::string text = argument(made, one.key);
    EXPECT_TRUE(text == one.text || text == std::string(ASSAY_SOURCE_DIR "/") + one.text) << one.key << ": " << text;
  }
  EXPECT_EQ(argument(made, "--load"), ASSAY_SOURCE_DIR "/golden/moe_10m_licences/checkpoint");
  EXPECT_EQ(made.env_vars.size(), base.env_vars.size());
  EXPECT_EQ(made.assay.golden, GoldenKind::kKnownCompletion);
  EXPECT_EQ(made.assay.known_completion.size(), base.assay.known_completion.size());
  EXPECT_EQ(made.assay.timeout_s, 2.5);
  EXPECT_EQ(made.assay.memory_limit, 1048576U);
}

TEST(CaseText, RelationsTakeThePlaceOfTheKnownCompletion) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("case_text_relations_" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  MetamorphicBlock block;
  block.relations = {"prefix_cache", "thread_count"};
  block.threads = {3};
  block.new_tokens = 4;
  for (const bool chosen : {true, false}) {
    CaseChange change;
    change.metrics = {"generated_tokens"};
    change.metamorphic = chosen ? block : MetamorphicBlock();
    std::ofstream(folder / "model_config.yaml") << case_text(read_one(kBase), change);
    const TestCase made = read_one(folder.string());
    ASSERT_TRUE(made.error.ok()) << made.error.message();
    ASSERT_TRUE(made.assay.metamorphic.has_value());
    EXPECT_EQ(made.assay.metamorphic->relations, change.metamorphic->relations);
    EXPECT_EQ(made.assay.metamorphic->threads, change.metamorphic->threads);
    EXPECT_EQ(made.assay.metamorphic->new_tokens, change.metamorphic->new_tokens);
    EXPECT_TRUE(made.assay.known_completion.empty());
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace assay::self_test
