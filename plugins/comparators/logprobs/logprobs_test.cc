#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "assay/sdk.hpp"
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

// One comparison of -1.0 with -1.1 under these options.
Verdict judge_with(std::string_view options, std::string* message = nullptr) {
  const double golden = -1.0;
  const double result = -1.1;
  auto reference = sdk::sized<assay_record>();
  reference.has = ASSAY_HAS_LOGPROBS;
  reference.logprobs = {&golden, 1};
  assay_record candidate = reference;
  candidate.logprobs = {&result, 1};
  const assay_pair pair = {sdk::view("7"), &reference, &candidate};
  auto judgement = sdk::sized<assay_judgement>();
  judgement.pairs = &pair;
  judgement.pair_count = 1;
  judgement.options = sdk::view(options);
  struct Seen {
    uint32_t kind = 0;
    std::string message;
  } seen;
  const assay_sink sink = {&seen, [](void* context, const assay_finding* finding) {
                             static_cast<Seen*>(context)->kind = finding->kind;
                             static_cast<Seen*>(context)->message = sdk::text(finding->message);
                           }};
  const Status status = sdk::call((*built_comparator("logprobs"))->judge, &judgement, &sink);
  EXPECT_TRUE(status.ok()) << status.message();
  if (message != nullptr) *message = seen.message;
  return seen.kind == ASSAY_FINDING_WITHIN ? Verdict::kEquivalent : Verdict::kDrift;
}

TEST(Logprobs, TheDefaultToleranceFollowsDtypeLogitAndNoise) {
  std::string message;
  EXPECT_EQ(judge_with("{}"), Verdict::kDrift);
  EXPECT_EQ(judge_with(R"({"dtype": "bf16"})", &message), Verdict::kEquivalent);
  EXPECT_THAT(message, HasSubstr("0 of 1 over tolerance 0.125 (2 ULP of bf16 at logits of 8 to 16), smallest passing "
                                 "tolerance 0.1000"));
  EXPECT_EQ(judge_with(R"({"dtype": "bf16", "logit": 3.5})"), Verdict::kDrift);  // 2 ULP = 0.03125
  EXPECT_EQ(judge_with(R"({"dtype": "fp16"})"), Verdict::kDrift);
  EXPECT_EQ(judge_with(R"({"noise": {"max": 0.06}})"), Verdict::kEquivalent);
  EXPECT_EQ(judge_with(R"({"noise": {"max": 0.06}, "dtype": "bf16", "tolerance": 0.01})"), Verdict::kDrift);
}

TEST(Logprobs, TheNinetyNinthPercentileLeavesOneOfAHundredOut) {
  std::string golden = R"({"0": {"logprobs": [)";
  std::string actual = golden;
  for (int i = 0; i < 200; ++i) {
    golden += i == 0 ? "-1" : ", -1";
    actual += i == 0 ? "-1" : i == 7 || i == 9 ? ", -1.5" : i == 11 ? ", -1.25" : ", -1";
  }
  golden += "]}}";
  actual += "]}}";
  // Rank ceil(0.99 * 200) = 198 of 197 zeros, 0.25, 0.5, 0.5.
  EXPECT_THAT(judge(golden, actual).reason, HasSubstr("p99 0.25, 3 of 200 over"));
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

TEST(Logprobs, WrongOptionsAreRefused) {
  const assay_comparator_table* table = *built_comparator("logprobs");
  ASSERT_NE(table, nullptr);
  assay_error error{};
  assay_judgement judgement{};
  for (const std::string_view options :
       {R"({"noise": 1})", R"({"tolerance": "x"})", R"({"tolerance": -1})", "[]", "{"}) {
    judgement.options = {options.data(), options.size()};
    assay_sink sink{};
    EXPECT_EQ(table->judge(&judgement, &sink, &error), ASSAY_INVALID) << options;
  }
}

}  // namespace
}  // namespace assay::compare
