#include "core/run/waive.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay::run {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

const WaiverContext kToday{.today = "2026-11-29", .platform = "cpu_x86_64", .environment = "dev"};

Waiver waiver(std::vector<Verdict> verdicts) {
  Waiver made;
  made.reason = "ties";
  made.owner = "kim";
  made.issue = "#12";
  made.expires = "2026-12-31";
  made.verdicts = std::move(verdicts);
  return made;
}

CaseVerdict judged(Verdict verdict, const std::vector<std::pair<std::string, Verdict>>& metrics = {}) {
  CaseVerdict made{verdict, "why", "golden.json", {}};
  for (const auto& [name, of] : metrics) made.metrics.push_back({name, of, {}});
  return made;
}

CaseVerdict applied(const Waiver& one, CaseVerdict verdict, const WaiverContext& context = kToday) {
  apply_declarations({.waivers = {one}}, context, &verdict);
  return verdict;
}

TEST(Waivers, CoveredFailureIsWaivedAndSaysByWhomUntilWhen) {
  const CaseVerdict verdict = applied(waiver({Verdict::kDrift}), judged(Verdict::kDrift));
  EXPECT_EQ(verdict.verdict, Verdict::kWaived);
  EXPECT_EQ(verdict.judged, Verdict::kDrift);
  EXPECT_EQ(verdict.reason, "why");
  EXPECT_EQ(verdict.declared, "waived: ties (kim, #12; until 2026-12-31, 32 days left)");
}

TEST(Waivers, OtherVerdictStaysAndSaysWhatIsCovered) {
  const CaseVerdict verdict = applied(waiver({Verdict::kDrift, Verdict::kFlaky}), judged(Verdict::kDiverged));
  EXPECT_EQ(verdict.verdict, Verdict::kDiverged);
  EXPECT_FALSE(verdict.judged.has_value());
  EXPECT_THAT(verdict.declared, StartsWith("waiver covers DRIFT, FLAKY only: ties"));
}

TEST(Waivers, OfARelationConcernsThatOneAlone) {
  Waiver one = waiver({Verdict::kDiverged});
  one.relations = {"prefix_cache"};
  one.expect_failure = true;
  WaiverContext context = kToday;
  context.relation = "prefix_cache";
  EXPECT_EQ(applied(one, judged(Verdict::kDiverged), context).verdict, Verdict::kXfail);
  EXPECT_EQ(applied(one, judged(Verdict::kIdentical), context).verdict, Verdict::kXpass);
  for (const char* other : {"chunked_prefill", ""}) {
    context.relation = other;
    EXPECT_EQ(applied(one, judged(Verdict::kDiverged), context).verdict, Verdict::kDiverged) << other;
    EXPECT_EQ(applied(one, judged(Verdict::kIdentical), context).verdict, Verdict::kIdentical) << other;
    EXPECT_THAT(applied(one, judged(Verdict::kIdentical), context).declared, IsEmpty()) << other;
  }
  one.relations = {};
  context.relation = "save_load";
  EXPECT_EQ(applied(one, judged(Verdict::kDiverged), context).verdict, Verdict::kXfail) << "without relations: any";
}

TEST(Waivers, LastDayCountsAndTheDayAfterDoesNot) {
  WaiverContext context = kToday;
  context.today = "2026-12-31";
  EXPECT_EQ(applied(waiver({Verdict::kDrift}), judged(Verdict::kDrift), context).verdict, Verdict::kWaived);
  context.today = "2027-01-01";
  const CaseVerdict expired = applied(waiver({Verdict::kDrift}), judged(Verdict::kDrift), context);
  EXPECT_EQ(expired.verdict, Verdict::kDrift);
  EXPECT_FALSE(expired.judged.has_value());
  EXPECT_EQ(expired.declared, "waiver no longer counts: ties (kim, #12; expired on 2026-12-31)");
}

TEST(Waivers, PlatformAndEnvironmentLimitIt) {
  Waiver limited = waiver({Verdict::kDrift});
  limited.platforms = {"dgx_h100", "cpu_x86_64"};
  limited.environments = {"dev"};
  EXPECT_EQ(applied(limited, judged(Verdict::kDrift)).verdict, Verdict::kWaived);
  limited.environments = {"lts"};
  EXPECT_EQ(applied(limited, judged(Verdict::kDrift)).verdict, Verdict::kDrift);
  EXPECT_THAT(applied(limited, judged(Verdict::kDrift)).declared, IsEmpty());
  limited.environments = {};
  limited.platforms = {"dgx_h100"};
  EXPECT_EQ(applied(limited, judged(Verdict::kDrift)).verdict, Verdict::kDrift);
  limited.expect_failure = true;
  EXPECT_EQ(applied(limited, judged(Verdict::kIdentical)).verdict, Verdict::kIdentical);
}

TEST(Waivers, EveryFailingMetricMustBeNamed) {
  Waiver limited = waiver({Verdict::kDrift});
  limited.metrics = {"logprobs"};
  const auto with = [&](std::vector<std::pair<std::string, Verdict>> metrics) {
    return applied(limited, judged(Verdict::kDrift, std::move(metrics)));
  };
  EXPECT_EQ(with({{"text", Verdict::kIdentical}, {"logprobs", Verdict::kDrift}}).verdict, Verdict::kWaived);
  EXPECT_EQ(with({{"throughput", Verdict::kDrift}, {"logprobs", Verdict::kDrift}}).verdict, Verdict::kDrift);
  EXPECT_EQ(with({}).verdict, Verdict::kDrift);
  EXPECT_THAT(with({}).declared, StartsWith("waiver covers DRIFT of logprobs only"));
}

TEST(Waivers, PassKeepsItsVerdictAndTheWaiverIsUnused) {
  const CaseVerdict verdict = applied(waiver({Verdict::kDrift}), judged(Verdict::kEquivalent));
  EXPECT_EQ(verdict.verdict, Verdict::kEquivalent);
  EXPECT_FALSE(verdict.judged.has_value());
  EXPECT_THAT(verdict.declared, StartsWith("waiver unused, the case passes: ties (kim, #12;"));
}

TEST(Waivers, ExpectedFailureIsXfailAndAPassIsXpassWhichDoesNotPass) {
  Waiver expected = waiver({Verdict::kDiverged});
  expected.expect_failure = true;
  EXPECT_EQ(applied(expected, judged(Verdict::kDiverged)).verdict, Verdict::kXfail);
  const CaseVerdict passed = applied(expected, judged(Verdict::kIdentical));
  EXPECT_EQ(passed.verdict, Verdict::kXpass);
  EXPECT_EQ(passed.judged, Verdict::kIdentical);
  EXPECT_FALSE(passes(passed.verdict));
  EXPECT_EQ(passed.reason, "passes although it is declared to fail: remove the waiver; why");
  expected.expires = "2026-11-28";
  EXPECT_EQ(applied(expected, judged(Verdict::kIdentical)).verdict, Verdict::kIdentical);
  EXPECT_EQ(applied(expected, judged(Verdict::kDiverged)).verdict, Verdict::kDiverged);
}

TEST(Waivers, ValidOneWinsOverExpiredAndUnrelatedOnes) {
  Waiver expired = waiver({Verdict::kDrift});
  expired.expires = "2026-01-01";
  CaseVerdict verdict = judged(Verdict::kDrift);
  apply_declarations({.waivers = {waiver({Verdict::kFlaky}), expired, waiver({Verdict::kDrift})}}, kToday, &verdict);
  EXPECT_EQ(verdict.verdict, Verdict::kWaived);
}

TEST(Waivers, SkippedIsNeverTouched) {
  Waiver expected = waiver({Verdict::kDrift});
  expected.expect_failure = true;
  EXPECT_EQ(applied(expected, judged(Verdict::kSkipped)).verdict, Verdict::kSkipped);
  EXPECT_THAT(applied(expected, judged(Verdict::kSkipped)).declared, IsEmpty());
}

TEST(TestEvaluation, XpassAllowsTheEngineToFailButNotTheResultsToDiffer) {
  TestCase test;
  test.test_evaluation = "xpass";
  const Declarations declarations = declarations_of(test);
  const auto of = [&](Verdict verdict, bool engine_failed) {
    WaiverContext context = kToday;
    context.engine_failed = engine_failed;
    CaseVerdict made = judged(verdict);
    apply_declarations(declarations, context, &made);
    return made;
  };
  EXPECT_EQ(of(Verdict::kCrashed, true).verdict, Verdict::kXfail);
  EXPECT_THAT(of(Verdict::kCrashed, true).declared, HasSubstr("TEST_EVALUATION"));
  EXPECT_EQ(of(Verdict::kInvalid, true).verdict, Verdict::kXfail);
  EXPECT_EQ(of(Verdict::kInvalid, false).verdict, Verdict::kInvalid);
  EXPECT_EQ(of(Verdict::kDiverged, false).verdict, Verdict::kDiverged);
  EXPECT_EQ(of(Verdict::kIdentical, false).verdict, Verdict::kIdentical);
  EXPECT_EQ(of(Verdict::kInfra, true).verdict, Verdict::kInfra);
}

}  // namespace
}  // namespace assay::run
