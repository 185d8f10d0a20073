// Every way in which the ancestor's comparator lets something pass, closed; judged by the real comparators.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/compare/test_plugins.h"

namespace assay::compare {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr std::string_view kWhole = R"({"0": {"input_prompt": "p", "generated_text": "The quick brown fox jumps.",
  "generated_tokens": [5, 6, 7, 8], "logprobs": [-1.0, -0.5, -0.25, -2.0, -3.0]}})";

std::string with(std::string_view field, std::string_view value) {
  std::map<std::string_view, std::string> fields = {{"input_prompt", R"("p")"},
                                                    {"generated_text", R"("The quick brown fox jumps.")"},
                                                    {"generated_tokens", "[5, 6, 7, 8]"},
                                                    {"logprobs", "[-1.0, -0.5, -0.25, -2.0, -3.0]"}};
  fields[field] = value;
  std::string out = R"({"0": {)";
  for (const auto& [name, json] : fields) {
    if (!json.empty()) out += (out.back() == '{' ? "\"" : ", \"") + std::string(name) + "\": " + json;
  }
  return out + "}}";
}

CaseVerdict judge(std::vector<std::string> metrics, std::string_view golden, std::string_view actual) {
  return judge_json(with_metrics(std::move(metrics)), golden, actual);
}

TEST(Holes, WhatIsEqualPasses) {
  const CaseVerdict verdict = judge({"generated_text", "generated_tokens", "logprobs"}, kWhole, kWhole);
  EXPECT_EQ(verdict.verdict, Verdict::kIdentical) << verdict.reason;
  EXPECT_THAT(verdict.reason, HasSubstr("generated_tokens: 4 values of 1 request equal"));
}

TEST(Holes, OneCharacterOfTextIsNoText) {
  const CaseVerdict verdict = judge({"generated_text"}, kWhole, with("generated_text", R"("T")"));
  EXPECT_EQ(verdict.verdict, Verdict::kInvalid);
  EXPECT_THAT(verdict.reason, HasSubstr("ends after 1 of the 26 code points"));
}

TEST(Holes, AMerePrefixOfTheTextFails) {
  EXPECT_EQ(judge({"generated_text"}, kWhole, with("generated_text", R"("The quick brown fox jumps")")).verdict,
            Verdict::kInvalid);
}

TEST(Holes, ALeadingBlankLineDoesNotExcuseAPrefix) {
  const std::string golden = with("generated_text", R"("\n\nThe quick brown fox.\n\nMore.")");
  EXPECT_EQ(judge({"generated_text"}, golden, with("generated_text", R"("\n\nT")")).verdict, Verdict::kInvalid);
  EXPECT_EQ(judge({"generated_text"}, golden, with("generated_text", R"("\n\nThe quick brown fox.")")).verdict,
            Verdict::kIdentical);
}

TEST(Holes, TheWholeCommonLengthOfACharacteristicTextJudges) {
  const std::string golden = with("generated_text", R"("First paragraph.\n\nSecond one.")");
  const CaseVerdict verdict =
      judge({"generated_text"}, golden, with("generated_text", R"("First paragraph.\n\nSecond two.")"));
  EXPECT_EQ(verdict.verdict, Verdict::kDiverged);
  EXPECT_THAT(verdict.reason, AllOf(HasSubstr("code point 25"), HasSubstr("Second |one"), HasSubstr("Second |two")));
}

TEST(Holes, EmptyTextAndTokensAreInvalid) {
  EXPECT_EQ(judge({"generated_text"}, kWhole, with("generated_text", R"("")")).verdict, Verdict::kInvalid);
  EXPECT_EQ(judge({"generated_text"}, with("generated_text", R"("")"), kWhole).verdict, Verdict::kInvalid);
  EXPECT_EQ(judge({"generated_tokens"}, with("generated_tokens", "[]"), with("generated_tokens", "[]")).verdict,
            Verdict::kInvalid);
  EXPECT_EQ(judge({"logprobs"}, with("logprobs", "[]"), with("logprobs", "[]")).verdict, Verdict::kInvalid);
}

TEST(Holes, EmptyMetricsFail) { EXPECT_EQ(judge({}, kWhole, kWhole).verdict, Verdict::kNotComparable); }

TEST(Holes, AMissingRequestIsNamed) {
  const CaseVerdict verdict =
      judge({"generated_tokens"}, R"({"0": {"generated_tokens": [1]}, "7": {"generated_tokens": [1]}})",
            R"({"0": {"generated_tokens": [1]}})");
  EXPECT_EQ(verdict.verdict, Verdict::kInvalid);
  EXPECT_EQ(verdict.reason, "request 7: is in the golden but missing from the result");
}

TEST(Holes, AnExtraRequestIsNamed) {
  const CaseVerdict verdict = judge({"generated_tokens"}, R"({"0": {"generated_tokens": [1]}})",
                                    R"({"0": {"generated_tokens": [1]}, "8": {"generated_tokens": [1]}})");
  EXPECT_EQ(verdict.verdict, Verdict::kInvalid);
  EXPECT_EQ(verdict.reason, "request 8: is in the result but not in the golden");
}

TEST(Holes, NanFailsEvenWhenBothSidesHaveIt) {
  const std::string nan = with("logprobs", "[-1.0, NaN, -0.25, -2.0, -3.0]");
  for (const auto& [golden, actual] :
       {std::pair<std::string_view, std::string_view>(nan, kWhole), {kWhole, nan}, {nan, nan}}) {
    const CaseVerdict verdict = judge({"logprobs"}, golden, actual);
    EXPECT_EQ(verdict.verdict, Verdict::kInvalid);
    EXPECT_THAT(verdict.reason, HasSubstr("NaN at logprobs[1]"));
  }
}

TEST(Holes, EqualInfinitiesFail) {
  const std::string inf = with("logprobs", "[-1.0, -Infinity, -0.25, -2.0, -3.0]");
  EXPECT_EQ(judge({"logprobs"}, inf, inf).verdict, Verdict::kInvalid);
}

TEST(Holes, ATypoInMetricsFailsBesideOneThatRan) {
  const CaseVerdict verdict = judge({"generated_tokens", "logprob"}, kWhole, kWhole);
  EXPECT_EQ(verdict.verdict, Verdict::kNotComparable);
  EXPECT_THAT(verdict.reason, HasSubstr("\"logprob\""));
}

TEST(Holes, AFieldThatTheResultLacksFails) {
  for (const std::string metric : {"generated_text", "generated_tokens", "logprobs"}) {
    const CaseVerdict verdict = judge({metric}, kWhole, with(metric, ""));
    EXPECT_EQ(verdict.verdict, Verdict::kNotComparable) << metric;
    EXPECT_THAT(verdict.reason, HasSubstr("the result lacks " + metric));
  }
}

TEST(Holes, AFieldThatTheGoldenLacksFailsBesideOneThatRan) {
  const CaseVerdict verdict = judge({"generated_tokens", "logprobs"}, with("logprobs", ""), kWhole);
  EXPECT_EQ(verdict.verdict, Verdict::kNotComparable);
  EXPECT_THAT(verdict.reason, HasSubstr("the golden lacks logprobs"));
}

TEST(Holes, AnotherPromptIsAnotherQuestion) {
  EXPECT_EQ(judge({"generated_text"}, kWhole, with("input_prompt", R"("q")")).verdict, Verdict::kInvalid);
}

TEST(Holes, TheFirstDivergentTokenIsShownWithTextAndLogprobs) {
  const std::string actual = R"({"0": {"input_prompt": "p", "generated_text": "The quick red fox jumps.",
    "generated_tokens": [5, 6, 9, 8], "logprobs": [-1.0, -0.5, -0.25, -1.75, -3.0]}})";
  const CaseVerdict verdict = judge({"generated_tokens"}, kWhole, actual);
  EXPECT_EQ(verdict.verdict, Verdict::kDiverged);
  EXPECT_EQ(verdict.metrics[0].findings[0].index, 2);
  EXPECT_EQ(
      verdict.reason,
      "generated_tokens: request 0: first divergent token 2: golden 7 (logprob -2), result 9 (logprob -1.75); 2 of 4 "
      "tokens match before it, 1 differ from there on; text differs at code point 10: golden \"The quick |brown fox "
      "jumps.\", result \"The quick |red fox jumps.\"");
}

TEST(Holes, TokensThatStopEarlyOrGoOnFail) {
  EXPECT_EQ(judge({"generated_tokens"}, kWhole, with("generated_tokens", "[5, 6]")).verdict, Verdict::kInvalid);
  EXPECT_EQ(judge({"generated_tokens"}, kWhole, with("generated_tokens", "[5, 6, 7, 8, 9]")).verdict,
            Verdict::kDiverged);
}

// The ancestor: "No test performed" as soon as there is a request; here the metric that is listed is judged.
TEST(Holes, ThroughputAloneIsJudgedBesideRequests) {
  const std::string golden = R"({"0": {"generated_tokens": [1]}, "throughput": [9, 100, 100]})";
  EXPECT_EQ(judge({"throughput"}, golden, golden).verdict, Verdict::kIdentical);
  EXPECT_EQ(judge({"throughput"}, golden, R"({"0": {"generated_tokens": [1]}, "throughput": [9, 50, 50]})").verdict,
            Verdict::kDrift);
}

// The ancestor asks for a new golden when a run is 20 % faster, and divides nothing by a list of one.
TEST(Holes, FasterIsNoFailureAndOneValueNoCrash) {
  EXPECT_EQ(judge({"throughput"}, R"({"throughput": [9, 100]})", R"({"throughput": [9, 130]})").verdict,
            Verdict::kEquivalent);
  EXPECT_EQ(judge({"throughput"}, R"({"throughput": [100]})", R"({"throughput": [100]})").verdict, Verdict::kIdentical);
  EXPECT_EQ(judge({"throughput"}, R"({"throughput": 100})", R"({"throughput": 40})").verdict, Verdict::kDrift);
}

TEST(Holes, AThroughputThatOneSideLacksFails) {
  EXPECT_EQ(judge({"generated_tokens", "throughput"}, R"({"0": {"generated_tokens": [1]}, "throughput": [1, 2]})",
                  R"({"0": {"generated_tokens": [1]}})")
                .verdict,
            Verdict::kNotComparable);
  EXPECT_EQ(judge({"generated_tokens", "throughput"}, R"({"0": {"generated_tokens": [1]}})",
                  R"({"0": {"generated_tokens": [1]}, "throughput": [1, 2]})")
                .verdict,
            Verdict::kNotComparable);
}

// The ancestor never compares it: listing it raises a TypeError.
TEST(Holes, PrefillCountsAreCompared) {
  const std::string golden = R"({"0": {"generated_tokens": [1]}, "lifetime_prefill_token_count": 88})";
  EXPECT_EQ(judge({"lifetime_prefill_token_count"}, golden, golden).verdict, Verdict::kIdentical);
  EXPECT_EQ(judge({"lifetime_prefill_token_count"}, golden,
                  R"({"0": {"generated_tokens": [1]}, "lifetime_prefill_token_count": 89})")
                .verdict,
            Verdict::kDrift);
}

TEST(Holes, NamesOfQuantitiesAreNoRequests) {
  const std::string counted = R"({"0": {"generated_tokens": [1]}, "async_sched_step_count": 7, "a_new_counter": 3})";
  EXPECT_EQ(judge({"generated_tokens"}, R"({"0": {"generated_tokens": [1]}})", counted).verdict, Verdict::kIdentical);
}

TEST(Holes, AFailingRequestIsNotHiddenByOthers) {
  const CaseVerdict verdict =
      judge({"generated_tokens"}, R"({"0": {"generated_tokens": [1]}, "1": {"generated_tokens": [2]}})",
            R"({"0": {"generated_tokens": [1]}, "1": {"generated_tokens": [3]}})");
  EXPECT_EQ(verdict.verdict, Verdict::kDiverged);
  EXPECT_EQ(verdict.metrics[0].findings.size(), 2U);
}

}  // namespace
}  // namespace assay::compare
