#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/compare/test_plugins.h"

namespace assay::compare {
namespace {

using testing::AllOf;
using testing::HasSubstr;

CaseVerdict judge(std::string_view golden, std::string_view actual, std::optional<double> tolerance = std::nullopt) {
  JudgeOptions options = with_metrics({"logprobs"});
  if (tolerance) options.tolerances["logprobs"] = *tolerance;
  return judge_json(options, golden, actual);
}

TEST(Logprobs, EqualValuesAreIdentical) {
  const CaseVerdict verdict = judge(R"({"0": {"logprobs": [-1, -2]}})", R"({"0": {"logprobs": [-1, -2]}})");
  EXPECT_EQ(verdict.verdict, Verdict::kIdentical);
  EXPECT_THAT(verdict.metrics[0].findings[0].message, HasSubstr("max |Δ| 0 at request 0"));
}

TEST(Logprobs, EveryVerdictTellsTheDifferences) {
  const CaseVerdict verdict = judge(R"({"0": {"logprobs": [-1, -2, -3, -4]}, "4": {"logprobs": [-1]}})",
                                    R"({"0": {"logprobs": [-1, -2.0005, -3.25, -4]}, "4": {"logprobs": [-1]}})");
  EXPECT_EQ(verdict.verdict, Verdict::kDrift);
  const Finding& finding = verdict.metrics[0].findings[0];
  EXPECT_EQ(finding.index, 2);
  EXPECT_EQ(finding.compared, 4U);
  EXPECT_EQ(finding.differing, 1U);
  EXPECT_EQ(finding.max_abs_difference, 0.25);
  EXPECT_EQ(finding.smallest_passing_tolerance, 0.25);
  EXPECT_THAT(finding.message, AllOf(HasSubstr("max |Δ| 0.25 at request 0 index 2"), HasSubstr("mean 0.0626"),
                                     HasSubstr("1 of 4 over tolerance 0.001"), HasSubstr("tolerance 0.25")));
  const Finding& all = verdict.metrics[0].findings.back();
  EXPECT_TRUE(all.note);
  EXPECT_EQ(all.compared, 5U);
  EXPECT_THAT(all.message, HasSubstr("all requests: max |Δ| 0.25 at request 0 index 2"));
}

TEST(Logprobs, TheToleranceDecidesAndIsInclusive) {
  constexpr std::string_view kGolden = R"({"0": {"logprobs": [-1.0]}})";
  constexpr std::string_view kActual = R"({"0": {"logprobs": [-1.25]}})";
  EXPECT_EQ(judge(kGolden, kActual, 0.25).verdict, Verdict::kEquivalent);
  EXPECT_EQ(judge(kGolden, kActual, 0.2499).verdict, Verdict::kDrift);
  EXPECT_EQ(judge(kGolden, R"({"0": {"logprobs": [-1.0009]}})").verdict, Verdict::kEquivalent);
  EXPECT_EQ(judge(kGolden, R"({"0": {"logprobs": [-1.0011]}})").verdict, Verdict::kDrift);
}

TEST(Logprobs, OtherLengthsAreInvalid) {
  EXPECT_EQ(judge(R"({"0": {"logprobs": [-1, -2]}})", R"({"0": {"logprobs": [-1]}})").verdict, Verdict::kInvalid);
  EXPECT_EQ(judge(R"({"0": {"generated_tokens": [1], "logprobs": [-1, -2, -3]}})",
                  R"({"0": {"generated_tokens": [1], "logprobs": [-1, -2]}})")
                .verdict,
            Verdict::kInvalid);
  EXPECT_EQ(judge(R"({"0": {"generated_tokens": [1, 2], "logprobs": [-1]}})",
                  R"({"0": {"generated_tokens": [1, 2], "logprobs": [-1]}})")
                .verdict,
            Verdict::kInvalid);
}

TEST(Logprobs, AbsentPromptPositionsAreNotComparable) {
  const CaseVerdict verdict = judge(R"({"0": {"generated_tokens": [1], "logprobs": [-1, -2, -3]}})",
                                    R"({"0": {"generated_tokens": [1], "logprobs": [-3]}})");
  EXPECT_EQ(verdict.verdict, Verdict::kNotComparable);
  EXPECT_THAT(verdict.reason, HasSubstr("the result lacks logprobs of prompt positions"));
}

TEST(Logprobs, WhereTokensPartOnlyTheSharedPrefixIsCompared) {
  const CaseVerdict verdict =
      judge(R"({"0": {"generated_tokens": [1, 2, 3], "logprobs": [-1, -2, -0.5, -0.5, -0.5]}})",
            R"({"0": {"generated_tokens": [1, 9, 3], "logprobs": [-1, -2.0001, -0.5, -7, -8]}})");
  EXPECT_EQ(verdict.verdict, Verdict::kDiverged);
  ASSERT_EQ(verdict.metrics[0].findings.size(), 1U);
  const Finding& finding = verdict.metrics[0].findings[0];
  EXPECT_EQ(finding.compared, 3U);
  EXPECT_EQ(finding.index, 3);
  EXPECT_LT(finding.max_abs_difference, 0.001);
  EXPECT_THAT(finding.message, AllOf(HasSubstr("only the 3 logprobs before it are compared"),
                                     HasSubstr("golden 2 (logprob -0.5), result 9 (logprob -7)")));
}

TEST(Logprobs, NumbersBeyondToleranceBeforeTheTokensPartAreToldToo) {
  const CaseVerdict verdict = judge(R"({"0": {"generated_tokens": [1, 2], "logprobs": [-1, -2, -0.5]}})",
                                    R"({"0": {"generated_tokens": [1, 9], "logprobs": [-1.5, -2, -0.5]}})");
  EXPECT_EQ(verdict.verdict, Verdict::kDiverged);
  ASSERT_EQ(verdict.metrics[0].findings.size(), 2U);
  EXPECT_EQ(verdict.metrics[0].findings[0].verdict, Verdict::kDrift);
}

TEST(Logprobs, SeparatePartsAreJoined) {
  EXPECT_EQ(judge(R"({"0": {"prompt_logprobs": [-1], "generated_logprobs": [-2]}})", R"({"0": {"logprobs": [-1, -2]}})")
                .verdict,
            Verdict::kIdentical);
}

TEST(Logprobs, UnknownOptionsAreRefused) {
  const assay_comparator_table* table = built_comparator("logprobs");
  ASSERT_NE(table, nullptr);
  assay_error error{};
  assay_judgement judgement{};
  for (const std::string_view options : {R"({"tol": 1})", R"({"tolerance": "x"})", R"({"tolerance": -1})", "[]", "{"}) {
    judgement.options = {options.data(), options.size()};
    assay_sink sink{};
    EXPECT_EQ(table->judge(&judgement, &sink, &error), ASSAY_INVALID) << options;
  }
}

}  // namespace
}  // namespace assay::compare
