// The cases of the 16B mixture, whose weights are not in the tree.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/program.h"

namespace assay::tests {
namespace {

using nlohmann::json;
using testing::HasSubstr;

const std::string kFolder = "testcases/gpt/";
const std::string kLicences = kFolder + "gpt_static_inference_tp1_pp1_16b_multiprompt_tokensmatch";
const std::string kWeights = "/model/deepseek_16b_pyt/dcp/mcore-v1_bf16/";
const std::string kVocabulary = "multiMixV8.gpt4o_nc_sd.500000.128k.vocab.json";

TEST(SixteenBillion, WithoutWeightsBothCasesAreSkippedWithTheReason) {
  const TemporaryFolder folder;
  const Output run = run_program("assay", {"run", kFolder, "--json", "--output", folder / "out"});
  EXPECT_EQ(run.code, 4) << run.err;
  const json cases = json::parse(run.out);
  ASSERT_EQ(cases.size(), 2U);
  for (const json& one : cases) EXPECT_EQ(one["verdict"], "SKIPPED") << one.dump(1);
  EXPECT_THAT(cases[0]["reason"].get<std::string>(), HasSubstr("requires CHECKPOINT_LOAD_PATH"));
  EXPECT_THAT(cases[1]["reason"].get<std::string>(), HasSubstr("requires RANDOM_16B_CHECKPOINT"));
}

TEST(SixteenBillion, AVariableAloneIsNotTheWeights) {
  const TemporaryFolder folder;
  const Output run = run_program("assay", {"run", kLicences, "--set", "CHECKPOINT_LOAD_PATH=" + folder.path().string(),
                                           "--json", "--output", folder / "out"});
  EXPECT_EQ(run.code, 4) << run.err;
  EXPECT_THAT(json::parse(run.out)[0]["reason"].get<std::string>(), HasSubstr(kWeights + "checkpoints does not exist"));
}

TEST(SixteenBillion, EveryArgumentIsKnownAndThePromptsAreFoundBesideTheCase) {
  const Output shown = run_program("assay", {"show", kLicences, "--set", "CHECKPOINT_LOAD_PATH=/nowhere", "--json"});
  const json one = json::parse(shown.out);
  EXPECT_GT(one["arguments"].size(), 50U);
  for (const json& argument : one["arguments"]) EXPECT_NE(argument["class"], "unknown") << argument.dump();
  EXPECT_EQ(one["prompts"].size(), 2U);
  EXPECT_TRUE(one["errors"].empty()) << one["errors"].dump(1);
  EXPECT_THAT(one["notes"].dump(), HasSubstr("--load")) << "the weights are not there";
}

// Results as the ancestor recorded them on an H100, judged by each golden.
class SixteenBillionReplay : public testing::TestWithParam<const char*> {
 protected:
  Output replay(const std::string& recorded, const TemporaryFolder& folder) {
    const std::string weights = folder.path().string() + kWeights;
    std::filesystem::create_directories(weights + "checkpoints");
    write_file(weights + kVocabulary, "[]");
    return run_program(
        "assay", {"run", kLicences, "--set", "CHECKPOINT_LOAD_PATH=" + folder.path().string(), "--engine", "replay",
                  "--recorded", recorded, "--platform", GetParam(), "--output", folder / "out"});
  }
};

TEST_P(SixteenBillionReplay, TheKnownCompletionsPass) {
  const TemporaryFolder folder;
  json results =
      json::parse(read_file(std::filesystem::path(ASSAY_SOURCE_DIR) / kLicences / "golden_values_dev_any.json"));
  const json prompts =
      json::parse(read_file(std::filesystem::path(ASSAY_SOURCE_DIR) / kLicences / "golden_values_dev_dgx_h100.json"));
  for (auto& [id, request] : results.items()) request["input_prompt"] = prompts[id]["input_prompt"];
  write_file(folder / "actual.json", results.dump());
  const Output run = replay(folder / "actual.json", folder);
  EXPECT_EQ(run.code, 0) << run.out << run.err;
  EXPECT_THAT(run.out, HasSubstr("IDENTICAL"));
}

TEST_P(SixteenBillionReplay, OneOtherWordFails) {
  const TemporaryFolder folder;
  std::string text = read_file(std::filesystem::path(ASSAY_SOURCE_DIR) / kLicences / "golden_values_dev_dgx_h100.json");
  text.replace(text.find("practical works"), 15, "practical goods");
  write_file(folder / "actual.json", text);
  const Output run = replay(folder / "actual.json", folder);
  EXPECT_EQ(run.code, 1) << run.out << run.err;
  EXPECT_THAT(run.out, HasSubstr("DIVERGED"));
}

INSTANTIATE_TEST_SUITE_P(Platforms, SixteenBillionReplay, testing::Values("dgx_a100", "dgx_h100", "cpu_x86_64"));

}  // namespace
}  // namespace assay::tests
