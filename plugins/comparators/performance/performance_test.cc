#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "assay/sdk.hpp"
#include "core/compare/test_plugins.h"

namespace assay::compare {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;

CaseVerdict judge(const std::string& metric, const std::string& golden, const std::string& actual,
                  std::optional<double> tolerance = {}) {
  JudgeOptions options = with_metrics({metric});
  if (tolerance) options.tolerances[metric] = *tolerance;
  return judge_json(options, golden, actual);
}

// A file of one quantity, in Megatron-LM's throughput-check-only form.
std::string quantity(const std::string& name, const std::string& value) { return "{\"" + name + "\": " + value + "}"; }

CaseVerdict throughput(const std::string& golden, const std::string& actual, std::optional<double> tolerance = {}) {
  return judge("throughput", quantity("throughput", golden), quantity("throughput", actual), tolerance);
}

const Finding& first(const CaseVerdict& verdict) { return verdict.metrics[0].findings[0]; }

// Kind of the first finding of a throughput of 100 in the golden against `result`, under these options.
uint32_t kind_under(std::string_view options, double result) {
  const double golden = 100;
  const assay_quantity reference = {sdk::view("throughput"), {&golden, 1}};
  const assay_quantity candidate = {sdk::view("throughput"), {&result, 1}};
  auto judgement = sdk::sized<assay_judgement>();
  judgement.metric = sdk::view("throughput");
  judgement.reference_quantities = &reference;
  judgement.reference_quantity_count = 1;
  judgement.candidate_quantities = &candidate;
  judgement.candidate_quantity_count = 1;
  judgement.options = sdk::view(options);
  uint32_t kind = 0;
  const assay_sink sink = {&kind, [](void* context, const assay_finding* finding) {
                             auto& seen = *static_cast<uint32_t*>(context);
                             if (seen == 0) seen = finding->kind;
                           }};
  const Status status = sdk::call((*built_comparator("throughput"))->judge, &judgement, &sink);
  EXPECT_TRUE(status.ok()) << status.message();
  return kind;
}

TEST(Throughput, MediansAreComparedWithoutTheWarmUp) {
  // Medians of 90, 100, 110 and of 95, 98, 99: 2 % slower. With the warm-up they would be 95 and 96.5.
  const CaseVerdict verdict = throughput("[1, 90, 110, 100]", "[5, 98, 95, 99]");
  EXPECT_EQ(verdict.verdict, Verdict::kEquivalent);
  EXPECT_EQ(first(verdict).compared, 3U);
  EXPECT_NEAR(first(verdict).smallest_passing_tolerance, 0.02, 1e-12);
  EXPECT_EQ(first(verdict).max_abs_difference, 2);
  EXPECT_THAT(
      first(verdict).message,
      AllOf(HasSubstr("median of 3 98 tokens/s, golden 100 tokens/s of 3: 2.00 % slower; limit 10.00 % (default)"),
            HasSubstr("smallest passing tolerance 0.02")));
}

TEST(Throughput, OnlyBitEqualListsAreIdentical) {
  const CaseVerdict equal = throughput("[1, 90, 110, 100]", "[1, 90, 110, 100]");
  EXPECT_EQ(equal.verdict, Verdict::kIdentical);
  EXPECT_THAT(first(equal).message, EndsWith("equal medians; limit 10.00 % (default), smallest passing tolerance 0"));
  const CaseVerdict same_median = throughput("[1, 90, 110, 100]", "[1, 90, 111, 100]");
  EXPECT_EQ(same_median.verdict, Verdict::kEquivalent);
  EXPECT_THAT(first(same_median).message, HasSubstr("equal medians"));
}

TEST(Throughput, ARegressionBeyondTheToleranceDrifts) {
  EXPECT_EQ(throughput("[1, 3]", "[1, 2.7]").verdict, Verdict::kEquivalent) << "10 % is within 10 %";
  const CaseVerdict verdict = throughput("[1, 100]", "[1, 89]");
  EXPECT_EQ(verdict.verdict, Verdict::kDrift);
  EXPECT_THAT(verdict.reason, HasSubstr("11.00 % slower; limit 10.00 %"));
  EXPECT_EQ(throughput("[1, 100]", "[1, 89]", 0.2).verdict, Verdict::kEquivalent);
  EXPECT_EQ(throughput("[1, 100]", "[1, 98]", 0.01).verdict, Verdict::kDrift);
}

TEST(Throughput, ARegressionWithinTheNoiseOfTheGoldenPasses) {
  EXPECT_EQ(kind_under("{}", 80), ASSAY_FINDING_BEYOND);
  EXPECT_EQ(kind_under(R"({"noise": {"relative": 0.07}})", 80), ASSAY_FINDING_WITHIN);  // 3 * 0.07 = 0.21
  EXPECT_EQ(kind_under(R"({"noise": {"relative": 0.06}})", 80), ASSAY_FINDING_BEYOND);
  EXPECT_EQ(kind_under(R"({"noise": {"relative": 0.07}, "tolerance": 0.01})", 80), ASSAY_FINDING_WITHIN);
  EXPECT_EQ(kind_under(R"({"noise": {"relative": 0.001}})", 91), ASSAY_FINDING_WITHIN);
}

TEST(Throughput, ALimitThatNoRateCanFallBelowIsInvalid) {
  EXPECT_EQ(throughput("100", "0.001", 0.9).verdict, Verdict::kDrift);
  const CaseVerdict verdict = throughput("100", "0.001", 1);
  EXPECT_EQ(verdict.verdict, Verdict::kInvalid);
  EXPECT_THAT(verdict.reason, HasSubstr("no regression could be told"));
  EXPECT_EQ(kind_under(R"({"noise": {"relative": 0.4}})", 1), ASSAY_FINDING_BROKEN);
  EXPECT_EQ(judge("tpot", R"({"0": {"tpot": [1, 1]}})", R"({"0": {"tpot": [1, 1.5]}})", 1).verdict,
            Verdict::kEquivalent);
}

TEST(Throughput, AnImprovementIsReportedAndNeverFails) {
  const CaseVerdict verdict = throughput("[1, 100]", "[1, 250]");
  EXPECT_EQ(verdict.verdict, Verdict::kEquivalent);
  ASSERT_EQ(verdict.metrics[0].findings.size(), 2U);
  EXPECT_TRUE(verdict.metrics[0].findings[1].note);
  EXPECT_THAT(verdict.metrics[0].findings[1].message, HasSubstr("150.00 % faster than the golden: an improvement"));
  EXPECT_EQ(first(verdict).smallest_passing_tolerance, 0);
}

TEST(Throughput, OneValueIsJudgedAsItIsAndSaidSo) {
  const CaseVerdict verdict = throughput("[100]", "96");
  EXPECT_EQ(verdict.verdict, Verdict::kEquivalent);
  ASSERT_EQ(verdict.metrics[0].findings.size(), 3U);
  EXPECT_THAT(verdict.metrics[0].findings[1].message, HasSubstr("the golden holds one value"));
  EXPECT_THAT(verdict.metrics[0].findings[2].message, HasSubstr("the result holds one value"));
  EXPECT_EQ(throughput("[100]", "[1, 60, 60]").verdict, Verdict::kDrift);
}

TEST(Throughput, WhatIsMissingNeverPasses) {
  const CaseVerdict result = judge("throughput", quantity("throughput", "[1, 2]"), quantity("other", "[1, 2]"));
  EXPECT_EQ(result.verdict, Verdict::kNotComparable);
  EXPECT_THAT(result.reason, HasSubstr("the result lacks throughput"));
  EXPECT_THAT(judge("throughput", quantity("other", "1"), quantity("throughput", "1")).reason,
              HasSubstr("the golden lacks throughput"));
  EXPECT_EQ(judge("throughput", quantity("other", "1"), quantity("other", "1")).verdict, Verdict::kNotComparable);
  EXPECT_EQ(throughput("null", "[1, 2]").verdict, Verdict::kInvalid) << "a file without any value";
}

TEST(Throughput, NumbersThatAreNoMeasurementAreInvalid) {
  for (const char* bad : {"[]", "[1, 0]", "[1, -5]", "[1, NaN]", "[1, Infinity]", "0"}) {
    EXPECT_EQ(throughput("[1, 100]", bad).verdict, Verdict::kInvalid) << bad;
    EXPECT_EQ(throughput(bad, "[1, 100]").verdict, Verdict::kInvalid) << bad;
  }
  EXPECT_THAT(throughput("[1, 100]", "[1, 0]").reason, HasSubstr("throughput of the result is 0 (value 1 of 2)"));
}

TEST(Memory, MoreIsTheRegressionAndTheUnitIsMebibytes) {
  const auto memory = [](const std::string& golden, const std::string& actual) {
    return judge("mem-max-allocated-bytes", quantity("mem-max-allocated-bytes", golden),
                 quantity("mem-max-allocated-bytes", actual));
  };
  EXPECT_EQ(memory("104857600", "104857600").verdict, Verdict::kIdentical);
  EXPECT_EQ(memory("100", "105").verdict, Verdict::kEquivalent);
  const CaseVerdict more = memory("104857600", "115343360");  // 100 and 110 MiB
  EXPECT_EQ(more.verdict, Verdict::kDrift);
  EXPECT_THAT(more.reason, HasSubstr("110 MiB, golden 100 MiB of 1: 10.00 % more; limit 5.00 %"));
  const CaseVerdict less = memory("100", "50");
  EXPECT_EQ(less.verdict, Verdict::kEquivalent);
  EXPECT_THAT(less.metrics[0].findings.back().message, HasSubstr("50.00 % less than the golden"));
}

std::string timed(const std::string& tpot, const std::string& latency = "1") {
  return R"({"0": {"tpot": )" + tpot + R"(, "latency": )" + latency + "}}";
}

TEST(Tpot, TheFirstTokenOfEveryRequestIsLeftOut) {
  // Medians of 0.1, 0.1, 0.3 and of 0.1, 0.1, 0.2; the prefills differ by a factor of 9.
  const CaseVerdict verdict = judge("tpot", R"({"0": {"tpot": [1, 0.1, 0.1]}, "1": {"tpot": [1, 0.3]}})",
                                    R"({"0": {"tpot": [9, 0.1, 0.1]}, "1": {"tpot": [9, 0.2]}})");
  EXPECT_EQ(verdict.verdict, Verdict::kEquivalent);
  EXPECT_EQ(first(verdict).compared, 3U);
  EXPECT_THAT(first(verdict).message, HasSubstr("median of 3 0.1 s, golden 0.1 s of 3: equal medians"));
}

TEST(Tpot, SlowerTokensDrift) {
  const CaseVerdict verdict = judge("tpot", timed("[1, 0.1, 0.2]"), timed("[1, 0.2, 0.2]"));
  EXPECT_EQ(verdict.verdict, Verdict::kDrift);
  EXPECT_THAT(verdict.reason, HasSubstr("median of 2 0.2 s, golden 0.15 s of 2: 33.33 % slower"));
  EXPECT_EQ(judge("tpot", timed("[1, 0.2]"), timed("[1, 0.1]")).verdict, Verdict::kEquivalent);
}

TEST(Tpot, RequestsWithoutTimesAreNamed) {
  const CaseVerdict verdict = judge("tpot", R"({"0": {"tpot": [1, 2]}, "1": {"tpot": [1, 2]}})",
                                    R"({"0": {"tpot": [1, 2]}, "1": {"generated_tokens": [1]}})");
  EXPECT_EQ(verdict.verdict, Verdict::kNotComparable);
  EXPECT_THAT(verdict.reason, HasSubstr("the result lacks tpot in 1 of 2 requests, first in 1"));
  const CaseVerdict prefill = judge("tpot", timed("[1]"), timed("[1]"));
  EXPECT_EQ(prefill.verdict, Verdict::kNotComparable);
  EXPECT_THAT(prefill.reason, HasSubstr("second generated token"));
  EXPECT_EQ(judge("tpot", timed("[1, 1]"), timed("[1, 0]")).verdict, Verdict::kInvalid);
}

TEST(Latency, IsTheMedianOverRequests) {
  const CaseVerdict verdict = judge("latency", R"({"0": {"latency": 1}, "1": {"latency": 2}, "2": {"latency": 9}})",
                                    R"({"0": {"latency": 2.5}, "1": {"latency": 2.5}, "2": {"latency": 1}})");
  EXPECT_EQ(verdict.verdict, Verdict::kDrift);
  EXPECT_THAT(verdict.reason, HasSubstr("median of 3 2.5 s, golden 2 s of 3: 25.00 % slower"));
  EXPECT_EQ(judge("latency", timed("[1]", "2"), timed("[1]", "2.1")).verdict, Verdict::kEquivalent);
  EXPECT_EQ(judge("latency", timed("[1]", "2"), timed("[1]", "0")).verdict, Verdict::kInvalid);
}

TEST(PrefillCount, IsEqualOrDrifts) {
  const auto count = [](const std::string& golden, const std::string& actual) {
    return judge("lifetime_prefill_token_count", quantity("lifetime_prefill_token_count", golden),
                 quantity("lifetime_prefill_token_count", actual));
  };
  EXPECT_EQ(count("1234", "1234").verdict, Verdict::kIdentical);
  const CaseVerdict verdict = count("1234", "1235");
  EXPECT_EQ(verdict.verdict, Verdict::kDrift);
  EXPECT_THAT(verdict.reason, HasSubstr("golden 1234 prefilled tokens, result 1235"));
  EXPECT_EQ(count("[5, 6]", "[5, 7]").verdict, Verdict::kDrift);
  EXPECT_EQ(count("[5, 6]", "[4, 6]").verdict, Verdict::kDrift) << "no warm-up is dropped from counts";
  EXPECT_EQ(count("[5, 6]", "[5]").verdict, Verdict::kInvalid);
  EXPECT_EQ(count("5", "4.5").verdict, Verdict::kInvalid);
  EXPECT_EQ(count("0", "0").verdict, Verdict::kInvalid);
  JudgeOptions options = with_metrics({"lifetime_prefill_token_count"});
  options.tolerances["lifetime_prefill_token_count"] = 5;
  EXPECT_THAT(
      judge_json(options, quantity("lifetime_prefill_token_count", "5"), quantity("lifetime_prefill_token_count", "5"))
          .reason,
      HasSubstr("takes no option \"tolerance\""));
}

TEST(PrefillCount, IsNotComparableWhereASideLacksIt) {
  EXPECT_EQ(judge("lifetime_prefill_token_count", quantity("throughput", "5"), quantity("throughput", "5")).verdict,
            Verdict::kNotComparable);
}

}  // namespace
}  // namespace assay::compare
