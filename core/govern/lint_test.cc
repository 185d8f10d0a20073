#include "core/govern/lint.h"

#include <gmock/gmock.h>

#include "core/golden/stable_text.h"
#include "core/govern/testing.h"

namespace assay::govern {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class LintTest : public GovernTest {
 protected:
  // "level rule" of each finding below the root, in order.
  std::vector<std::string> found(LintOptions options = {}) {
    report_ = *lint({root_.string()}, options);
    std::vector<std::string> lines;
    for (const LintFinding& finding : report_.findings) {
      lines.push_back((finding.level == LintLevel::kError ? "error " : "note ") + finding.rule);
    }
    return lines;
  }
  std::string message(const std::string& rule) const {
    for (const LintFinding& finding : report_.findings) {
      if (finding.rule == rule) return finding.message;
    }
    return {};
  }
  static std::string good(const std::string& extra = R"({"provenance": {"engine": "toy"}})") {
    ResultSet set = *read_results_text(R"({"0": {"input_prompt": "Say", "generated_text": "a", "logprobs": [-0.5]},
                                           "1": {"input_prompt": "Tell", "generated_text": "b", "logprobs": [-0.5]}})",
                                       "x");
    set.extra = extra;
    return stable_text(set);
  }
  // A case with two prompts whose other arguments need variables that nobody sets.
  TestCase two_prompts(const std::string& metrics = "[generated_text]") {
    write("model_config.yaml",
          "MODE: inference\nMODEL_ARGS:\n  --use-legacy-static-engine: true\n  --load: ${CHECKPOINT}\n"
          "  --tokenizer-type: TikTokenizer\n  --tokenizer-model: ${TOKENIZER}\n  --prompts: [Say Tell]\nMETRICS: " +
              metrics + "\n");
    return discover::discover({folder().string()})->front();
  }
  LintReport report_;
};

TEST_F(LintTest, AGoodGoldenHasNoFinding) {
  two_prompts();
  write(kGolden, good());
  EXPECT_THAT(found(), IsEmpty());
  EXPECT_EQ(report_.goldens, 1U);
  EXPECT_EQ(report_.unresolved_prompts, 0U) << "unset variables of other arguments do not hide the prompts";
}

TEST_F(LintTest, WhatIsWrongInsideAFileIsNamed) {
  two_prompts();
  write(kGolden, "{\n<<<<<<< HEAD\n\"0\": {}\n=======\n\"1\": {}\n>>>>>>> b\n}\n");
  EXPECT_THAT(found(), ElementsAre("error conflict-markers"));
  EXPECT_THAT(message("conflict-markers"), HasSubstr("at line 2 (3 marker lines)"));
  write(kGolden, "{\"0\": ");
  EXPECT_THAT(found(), ElementsAre("error json"));
  write(kGolden, R"({"0": {"input_prompt": "Say", "generated_text": "a", "generated_text": "b", "logprobs": [NaN]},
                     "1": {"input_prompt": "Tell", "generated_text": "a"}})");
  EXPECT_THAT(found(), ElementsAre("error duplicate-key", "note layout", "error non-finite", "note provenance"));
  EXPECT_THAT(message("non-finite"), HasSubstr("request 0: golden has NaN at logprobs[0]"));
  EXPECT_THAT(found({.require_provenance = true}), testing::Contains("error provenance"));
  write(kGolden, good(R"({"provenance": 3})"));
  EXPECT_THAT(found(), ElementsAre("error provenance"));
}

TEST_F(LintTest, EmptyValuesThatJudgeAreErrors) {
  two_prompts();
  write(kGolden, R"({"0": {"input_prompt": "Say", "generated_text": "", "logprobs": [-1.0]},
                     "1": {"input_prompt": "Tell", "generated_text": "a", "logprobs": [-1.0]}})");
  EXPECT_THAT(found(), testing::Contains("error empty"));
  EXPECT_THAT(message("empty"), HasSubstr("generated_text, which is empty in request 0"));
}

TEST_F(LintTest, RequestsAndPromptsAreHeldAgainstTheCase) {
  two_prompts("[generated_text, logprobs, routing_indices, lm loss]");
  ResultSet set = *read_results_text(good(), "x");
  set.requests[0].prompt = "Sing";
  set.requests[1].id = "7";
  set.requests[1].logprobs.reset();
  write(kGolden, stable_text(set));
  EXPECT_THAT(found(), ElementsAre("error metric-missing", "error metric-missing", "error missing-request",
                                   "error obsolete-request", "error prompt"));
  EXPECT_THAT(message("metric-missing"), HasSubstr("logprobs, which request 7 lacks"));
  EXPECT_THAT(message("obsolete-request"), HasSubstr("request 7 is asked by none of the case's 2 prompts"));
  EXPECT_THAT(message("missing-request"), HasSubstr("prompt 2 of 2 (\"Tell\") has no request 1"));
  EXPECT_THAT(message("prompt"), HasSubstr("golden has \"S|ing\", the case \"S|ay\""));
}

TEST_F(LintTest, PromptsThatCannotBeToldMakeNothingObsolete) {
  write("model_config.yaml",
        "MODE: inference\nMODEL_ARGS:\n  --load: x\n  --tokenizer-type: TikTokenizer\n  --tokenizer-model: y\n"
        "  --prompt-file: ${PROMPTS}\nMETRICS: [generated_text]\n");
  write(kGolden, good());
  EXPECT_THAT(found(), IsEmpty());
  EXPECT_EQ(report_.unresolved_prompts, 1U);
}

TEST_F(LintTest, AGoldenForAnotherPlatformIsNotObsolete) {
  two_prompts();
  for (const char* name :
       {"golden_values_dev_dgx_h100.json", "golden_values_lts_dgx_a100.json", "golden_values_dev_any.json"}) {
    write(name, good());
  }
  EXPECT_THAT(found(), IsEmpty());
  EXPECT_THAT(found({.environment = "dev", .platform = "dgx_h100"}), IsEmpty());
  EXPECT_EQ(report_.goldens, 1U);
}

TEST_F(LintTest, NamesThatNoRunLooksForAreErrors) {
  two_prompts();
  for (const char* name :
       {"golden_values_dev_dg  x_h100.json", "golden_values_dev_DGX_H100.json", "golden_values_dev_dxg_h100.json",
        "golden_values_dve_dgx_h100.json", "golden_values_dev_dgx_hh100.json", "golden_value_dev_any.json",
        "golden-values_dev_any.json"}) {
    write(name, good());
    EXPECT_THAT(found(), testing::Contains("error name")) << name;
    std::filesystem::remove(at(name));
  }
  write("golden_values_dev_my_cluster.json", good());
  EXPECT_THAT(found(), ElementsAre("note unknown-name"));
}

TEST_F(LintTest, OrphansAndLeftoversAreFound) {
  two_prompts();
  std::filesystem::create_directories(root_ / "moe" / "gone");
  std::ofstream(root_ / "moe" / "gone" / kGolden) << good();
  std::ofstream(root_ / "moe" / "gone" / kPending) << good();
  write(std::string(kGolden) + ".a1B2c3", "");
  EXPECT_THAT(found(), ElementsAre("error orphan", "error orphan", "note leftover"));
}

TEST_F(LintTest, PendingFilesWaitOrAreStale) {
  write(kGolden, good());
  const TestCase test = two_prompts();
  ASSERT_TRUE(record_text(test, R"({"0": {"input_prompt": "Say", "generated_text": "c", "logprobs": [-0.5]},
                                    "1": {"input_prompt": "Tell", "generated_text": "b", "logprobs": [-0.5]}})")
                  .ok());
  EXPECT_THAT(found(), ElementsAre("note pending"));
  EXPECT_EQ(report_.pending, 1U);
  write(kGolden, good(R"({"provenance": {"engine": "other"}})"));
  EXPECT_THAT(found(), ElementsAre("error stale-pending"));
  write(kPending, "{}");
  EXPECT_THAT(found(), ElementsAre("error pending"));
}

TEST_F(LintTest, TrainingGoldensAreHeldAgainstJsonAlone) {
  write("model_config.yaml", "MODE: pretraining\nMODEL_ARGS:\n  --a: 1\nMETRICS: [lm loss]\n");
  write(kGolden, R"({"lm loss": {"start_step": 1, "values": {"1": 10.5, "2": 9.5}}})");
  EXPECT_THAT(found({.require_provenance = true}), IsEmpty());
  write(kGolden, R"({"lm loss": {"values": {"1": 10.5, "1": NaN}}})");
  EXPECT_THAT(found(), ElementsAre("error duplicate-key", "error non-finite"));
  write(kGolden, " \n");
  EXPECT_THAT(found(), ElementsAre("error json"));
}

}  // namespace
}  // namespace assay::govern
