#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/compare/test_plugins.h"

namespace assay::compare {
namespace {

using testing::HasSubstr;

CaseVerdict judge(std::string_view golden, std::string_view actual) {
  return judge_json(with_metrics({"generated_tokens"}), golden, actual);
}

TEST(GeneratedTokens, AreCountedWhenEqual) {
  const CaseVerdict verdict = judge(R"({"0": {"generated_tokens": [1, 2]}})", R"({"0": {"generated_tokens": [1, 2]}})");
  EXPECT_EQ(verdict.verdict, Verdict::kIdentical);
  EXPECT_EQ(verdict.metrics[0].findings[0].compared, 2U);
}

TEST(GeneratedTokens, WithoutTextsAndLogprobsTheIdsAloneAreShown) {
  const CaseVerdict verdict = judge(R"({"0": {"generated_tokens": [1, 2]}})", R"({"0": {"generated_tokens": [1, 3]}})");
  EXPECT_EQ(verdict.verdict, Verdict::kDiverged);
  EXPECT_THAT(verdict.reason, HasSubstr("golden 2 (logprob not recorded), result 3 (logprob not recorded)"));
}

TEST(GeneratedTokens, ATruncatedResultTellsHowFarItGot) {
  const CaseVerdict verdict = judge(R"({"0": {"generated_tokens": [1, 2]}})", R"({"0": {"generated_tokens": [1]}})");
  EXPECT_EQ(verdict.verdict, Verdict::kInvalid);
  EXPECT_THAT(verdict.reason, HasSubstr("stops after 1 of 2 tokens"));
  EXPECT_THAT(verdict.reason, HasSubstr("result no token"));
}

TEST(GeneratedTokens, TakesNoTolerance) {
  JudgeOptions options = with_metrics({"generated_tokens"});
  options.tolerances["generated_tokens"] = 1;
  const CaseVerdict verdict =
      judge_json(options, R"({"0": {"generated_tokens": [1]}})", R"({"0": {"generated_tokens": [1]}})");
  EXPECT_EQ(verdict.verdict, Verdict::kInvalid);
  EXPECT_THAT(verdict.reason, HasSubstr("generated_tokens takes no option"));
}

}  // namespace
}  // namespace assay::compare
