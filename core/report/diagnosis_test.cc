#include "core/report/diagnosis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/report/sample_run.h"

namespace assay::report {
namespace {

using sample::again;
using sample::evidence;
using sample::finding;
using sample::ids;
using sample::metric;
using testing::HasSubstr;
using testing::IsEmpty;

ReportCase diverged(std::vector<RequestEvidence> list) {
  ReportCase made = sample::one_case("a", Verdict::kDiverged);
  made.verdict.evidence = std::move(list);
  return made;
}

std::string cause(const ReportCase& report) {
  const std::vector<Diagnosis> found = diagnose(report);
  return found.empty() ? "" : found[0].cause;
}
std::string sentence(const ReportCase& report) {
  const std::vector<Diagnosis> found = diagnose(report);
  return found.empty() ? "" : found[0].sentence;
}

std::vector<int32_t> with(std::vector<int32_t> list, size_t index, int32_t id) {
  list[index] = id;
  return list;
}
std::vector<int32_t> without(std::vector<int32_t> list, size_t index) {
  list.erase(list.begin() + static_cast<ptrdiff_t>(index));
  return list;
}

TEST(Diagnosis, IdenticalCasesAndBareVerdictsHaveNone) {
  EXPECT_THAT(diagnose(sample::one_case("a", Verdict::kIdentical)), IsEmpty());
  EXPECT_THAT(diagnose(sample::one_case("a", Verdict::kDiverged)), IsEmpty());
  EXPECT_THAT(diagnose(diverged({evidence("0", ids(1, 20), ids(500, 20))})), IsEmpty());
}

TEST(Diagnosis, NearTiesThatRecoverAreRounding) {
  RequestEvidence one = evidence("0", ids(1, 20), ids(1, 20));
  one.tokens[5].result->id = 99;
  one.first_divergent = 5;
  one.reanchoring = again(80, 2, 0, true);
  const ReportCase report = diverged({one});
  EXPECT_EQ(cause(report), "rounding");
  EXPECT_THAT(sentence(report), HasSubstr("78 of 80 positions agree, 2 near-ties are left"));
}

TEST(Diagnosis, OneTrueSplitIsNotRounding) {
  RequestEvidence one = evidence("0", ids(1, 20), ids(500, 20));
  one.reanchoring = again(80, 1, 1, true);
  Split split;
  split.index = 7;
  split.gap = 3.5;
  one.reanchoring->splits = {split};
  EXPECT_EQ(cause(diverged({one})), "a fault at one position");
  EXPECT_THAT(sentence(diverged({one})), HasSubstr("token 7"));
  one.reanchoring->true_splits = 60;
  EXPECT_EQ(cause(diverged({one})), "a difference everywhere");
}

TEST(Diagnosis, AnEngineThatPrefersTheGoldenWhenRunAgainDoesNotRepeatItself) {
  RequestEvidence one = evidence("0", ids(1, 20), ids(500, 20));
  one.reanchoring = again(80, 0, 0, false);
  EXPECT_EQ(cause(diverged({one})), "a run that does not repeat itself");
}

TEST(Diagnosis, PromptFaultsAreTold) {
  RequestEvidence one;
  one.request = "3";
  one.golden_prompt_ids = {1, 10, 11, 12};
  const auto with_result = [&](std::vector<int32_t> result) {
    one.result_prompt_ids = std::move(result);
    return diverged({one});
  };
  EXPECT_EQ(cause(with_result({1, 1, 10, 11, 12})), "prompt processing");
  EXPECT_THAT(sentence(with_result({1, 1, 10, 11, 12})),
              HasSubstr("request 3: 5 prompt tokens instead of 4: the first"));
  EXPECT_THAT(sentence(with_result({1, 1, 10, 11, 12})), HasSubstr("stands twice"));
  EXPECT_THAT(sentence(with_result({7, 1, 10, 11, 12})), HasSubstr("token 7 was put in front"));
  EXPECT_THAT(sentence(with_result({10, 11, 12})), HasSubstr("first token, 1, is missing"));
  EXPECT_THAT(sentence(with_result({1, 10})), HasSubstr("cut at its end"));
  EXPECT_THAT(sentence(with_result({11, 12})), HasSubstr("cut at its beginning"));
  EXPECT_THAT(sentence(with_result({1, 10, 99, 12})), HasSubstr("first differ at index 2"));
}

TEST(Diagnosis, TheOutputOfAnotherRequestIsRecognised) {
  const ReportCase report =
      diverged({evidence("0", ids(1, 20), ids(100, 20)), evidence("1", ids(100, 20), ids(1, 20))});
  EXPECT_EQ(cause(report), "output of another request");
  EXPECT_THAT(sentence(report),
              HasSubstr("request 0 was answered with the golden output of request 1, and the other way"));
}

TEST(Diagnosis, AFirstRequestThatIsRightBeforeWrongOnesMeansLeftOverState) {
  ReportCase report = diverged({evidence("1", ids(1, 20), ids(500, 20)), evidence("2", ids(40, 20), ids(700, 20))});
  report.verdict.metrics = {metric("generated_tokens", Verdict::kDiverged,
                                   {finding(Verdict::kIdentical, "0", -1), finding(Verdict::kDiverged, "1", 0),
                                    finding(Verdict::kDiverged, "2", 1)})};
  EXPECT_EQ(cause(report), "state left over by the previous request");
  report.verdict.metrics[0].findings[2].index = 30;
  EXPECT_NE(cause(report), "state left over by the previous request");
  report.verdict.metrics[0].findings[2].index = 1;
  report.verdict.metrics[0].findings[0].verdict = Verdict::kDiverged;
  EXPECT_NE(cause(report), "state left over by the previous request");
}

TEST(Diagnosis, EditsOfTheTokenListAreTold) {
  const std::vector<int32_t> golden = ids(1, 20);
  EXPECT_EQ(cause(diverged({evidence("0", golden, without(golden, 6))})), "a token dropped");
  EXPECT_EQ(cause(diverged({evidence("0", without(golden, 6), golden)})), "a token inserted");
  EXPECT_EQ(cause(diverged({evidence("0", without(with(golden, 7, 7), 6), with(golden, 7, 7))})), "a token repeated");
  EXPECT_EQ(cause(diverged({evidence("0", golden, with(with(golden, 6, 8), 7, 7))})), "two tokens exchanged");
  EXPECT_EQ(cause(diverged({evidence("0", golden, with(golden, 6, 999))})), "a single token changed afterwards");
  std::vector<int32_t> stuck = golden;
  std::fill(stuck.begin() + 6, stuck.end(), 42);
  EXPECT_EQ(cause(diverged({evidence("0", golden, stuck)})), "one token over and over");
  EXPECT_EQ(cause(diverged({evidence("0", golden, ids(1, 12))})), "stopped early");
  EXPECT_EQ(cause(diverged({evidence("0", ids(1, 12), golden)})), "ran on");
}

TEST(Diagnosis, ASecondRunTellsAnAlteredGoldenFromAFaultOfTheOutput) {
  RequestEvidence one = evidence("0", ids(1, 20), with(ids(1, 20), 6, 999));
  one.reanchoring = again(20, 0, 1, true);
  EXPECT_EQ(cause(diverged({one})), "an altered golden");
  one.reanchoring = again(20, 0, 0, false);
  EXPECT_EQ(cause(diverged({one})), "a token changed on its way out");
}

TEST(Diagnosis, EqualTokensWithOtherNumbersAreNoAlteredGolden) {
  RequestEvidence one = evidence("0", ids(1, 20), with(ids(1, 20), 6, 999));
  one.reanchoring = again(20, 0, 1, true);
  for (AlignedToken& token : one.tokens) token.golden->logprob = token.result->logprob = -0.5;
  EXPECT_EQ(cause(diverged({one})), "an altered golden");
  one.tokens[5].result->logprob = -0.9;  // in front of the token: no matter
  EXPECT_EQ(cause(diverged({one})), "an altered golden");
  one.tokens[9].result->logprob = -0.502;
  EXPECT_EQ(cause(diverged({one})), "a fault at one position");
  one.logprobs.emplace().tolerance = 0.01;
  EXPECT_EQ(cause(diverged({one})), "an altered golden");
}

TEST(Diagnosis, BrokenNumbersNameTheirSide) {
  ReportCase report = sample::one_case("a", Verdict::kInvalid);
  report.verdict.metrics = {
      metric("requests", Verdict::kInvalid, {finding(Verdict::kInvalid, "2", 7, "result has NaN at logprobs[7]")})};
  EXPECT_EQ(cause(report), "NaN or infinity");
  EXPECT_THAT(sentence(report), HasSubstr("request 2: result has NaN at logprobs[7]"));
  report.verdict.metrics[0].findings[0].message = "golden has NaN at logprobs[7]";
  EXPECT_EQ(cause(report), "the golden holds NaN or infinity");
}

TEST(Diagnosis, EqualTokensWithAnotherTextAreDetokenisation) {
  ReportCase report = diverged({});
  report.verdict.metrics = {metric("generated_text", Verdict::kDiverged),
                            metric("generated_tokens", Verdict::kIdentical)};
  EXPECT_EQ(cause(report), "detokenisation");
}

ReportCase drifted(double factor, double offset) {
  RequestEvidence one = evidence("0", ids(1, 20), ids(1, 20));
  for (size_t i = 0; i < one.tokens.size(); ++i) {
    const double golden = -0.1 - 0.2 * static_cast<double>(i % 7);
    one.tokens[i].golden->logprob = golden;
    one.tokens[i].result->logprob = golden * factor + offset;
  }
  one.logprobs = LogprobStatistics{
      .count = 20, .max = 0.5, .mean = 0.3, .p99 = 0.5, .over = 20, .tolerance = 0.01, .max_index = 4};
  ReportCase report = sample::one_case("a", Verdict::kDrift);
  report.verdict.metrics = {metric("logprobs", Verdict::kDrift)};
  report.verdict.evidence = {one};
  return report;
}

TEST(Diagnosis, RegularLogprobErrorsAreNamed) {
  EXPECT_EQ(cause(drifted(0.4343, 0)), "logprobs off by a factor");
  EXPECT_EQ(cause(drifted(1, -0.25)), "logprobs off by a constant");
}

TEST(Diagnosis, LogprobsInFewBitsOrAtTheWrongPositionAreNamed) {
  ReportCase report = drifted(1, 0);
  std::vector<AlignedToken>& tokens = report.verdict.evidence[0].tokens;
  for (AlignedToken& token : tokens) *token.result->logprob = -0.125;
  EXPECT_EQ(cause(report), "numbers kept in few bits");
  for (size_t i = 1; i < tokens.size(); ++i) tokens[i].result->logprob = tokens[i - 1].golden->logprob;
  EXPECT_EQ(cause(report), "logprobs at the wrong position");
}

TEST(Diagnosis, TheEndOfAnEngineIsToldFromWhatTheRunnerSaw) {
  EXPECT_EQ(cause(sample::one_case("a", Verdict::kCrashed, "SIGSEGV (Segmentation fault)")),
            "an invalid memory access");
  EXPECT_EQ(cause(sample::one_case("a", Verdict::kCrashed, "no verdict after 3 s")), "a hang");
  EXPECT_EQ(cause(sample::one_case("a", Verdict::kInvalid, "request 1: the engine never answered it")),
            "a lost request");
}

TEST(Diagnosis, MissingLogprobsAreNoDrift) {
  ReportCase report = drifted(1, 0.3);
  report.verdict.verdict = report.verdict.metrics[0].verdict = Verdict::kNotComparable;
  report.verdict.golden = "g";
  EXPECT_THAT(diagnose(report), IsEmpty());
}

TEST(Diagnosis, ExchangedRequestsAreNotBlamedOnTheirPrompts) {
  ReportCase report = diverged({evidence("0", ids(1, 20), ids(100, 20)), evidence("1", ids(100, 20), ids(1, 20))});
  report.verdict.evidence[0].golden_prompt_ids = {1};
  report.verdict.evidence[0].result_prompt_ids = {2};
  EXPECT_EQ(cause(report), "output of another request");
}

TEST(Diagnosis, IrregularDriftNamesWhatChangedInTheEnvironment) {
  ReportCase report = drifted(1, 0);
  for (size_t i = 0; i < 20; ++i) *report.verdict.evidence[0].tokens[i].result->logprob += i % 3 == 0 ? 0.02 : -0.03;
  EXPECT_EQ(cause(report), "numbers far apart");
  report.verdict.environment = {"driver: golden 1, result 2", "dtype: golden fp32, result bf16"};
  EXPECT_THAT(sentence(report), HasSubstr("dtype: golden fp32, result bf16"));
  report.verdict.evidence[0].logprobs->over = 1;
  report.verdict.evidence[0].logprobs->mean = 0.001;
  EXPECT_EQ(cause(report), "a single logprob");
}

TEST(Diagnosis, NumbersFarApartAreNotCalledAnotherOrderOfSummation) {
  ReportCase report = drifted(1, 0);
  for (size_t i = 0; i < 20; ++i) *report.verdict.evidence[0].tokens[i].result->logprob += i % 3 == 0 ? 0.02 : -0.03;
  LogprobStatistics& numbers = *report.verdict.evidence[0].logprobs;
  numbers.tolerance = 0.001;
  numbers.max = 0.02;
  EXPECT_EQ(cause(report), "numeric drift");
  numbers.max = 0.021;
  EXPECT_EQ(cause(report), "numbers far apart");
  EXPECT_THAT(sentence(report), HasSubstr("far more than another order of summation makes"));
}

TEST(Diagnosis, TheMarginTellsATieFromAWrongExpert) {
  RequestEvidence one = evidence("0", ids(1, 20), ids(1, 20));
  one.routing = RoutingEvidence{.compared = 80, .differing = 3, .first_layer = 2, .by_layer = {0, 0, 3}, .first = {}};
  one.routing->first.push_back({.token = 5, .layer = 2, .golden = {1, 2}, .result = {1, 3}, .margin = 0.0001});
  ReportCase report = diverged({one});
  EXPECT_EQ(cause(report), "experts nearly tied");
  report.verdict.evidence[0].routing->first[0].margin = 0.4;
  EXPECT_EQ(cause(report), "wrong expert");
}

TEST(Diagnosis, SlowTokensAreNotBlamedOnTheModel) {
  ReportCase report = sample::one_case("a", Verdict::kDrift);
  report.verdict.metrics = {metric("generated_tokens", Verdict::kIdentical), metric("tpot", Verdict::kDrift)};
  EXPECT_EQ(cause(report), "performance");
}

TEST(Diagnosis, EveryVerdictHasAMeaning) {
  for (const char* name : {"SKIPPED", "IDENTICAL", "EQUIVALENT", "XFAIL", "WAIVED", "XPASS", "DRIFT", "DIVERGED",
                           "FLAKY", "NOT_COMPARABLE", "INVALID", "INFRA", "CRASHED"}) {
    const std::optional<Verdict> verdict = parse_verdict(name);
    ASSERT_TRUE(verdict) << name;
    EXPECT_GT(verdict_meaning(sample::one_case("c", *verdict)).size(), 20u) << name;
  }
}

}  // namespace
}  // namespace assay::report
