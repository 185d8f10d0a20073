#include "core/run/repeats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/run/repeat_count.h"

namespace assay::run {
namespace {

using ::testing::HasSubstr;

RepeatVerdict repeat(Verdict verdict, const std::string& difference = "") {
  return {.verdict = {verdict, "why " + std::string(to_string(verdict)), "golden.json", {}},
          .has_results = verdict != Verdict::kCrashed,
          .difference = difference};
}

CaseVerdict combined(const std::vector<RepeatVerdict>& repeats, size_t planned = 0) {
  return combine_repeats(repeats, planned == 0 ? repeats.size() : planned).verdict;
}

TEST(Repeats, AllPassingAndBitEqualKeepTheWorstVerdict) {
  const CaseVerdict verdict = combined({repeat(Verdict::kIdentical), repeat(Verdict::kIdentical)});
  EXPECT_EQ(verdict.verdict, Verdict::kIdentical);
  EXPECT_EQ(verdict.reason, "why IDENTICAL; 2 repeats, bit-equal");
  ASSERT_EQ(verdict.metrics.size(), 1U);
  EXPECT_EQ(verdict.metrics[0].metric, kRepeatsMetric);
  EXPECT_EQ(verdict.metrics[0].verdict, Verdict::kIdentical);
  EXPECT_EQ(combined({repeat(Verdict::kIdentical), repeat(Verdict::kEquivalent)}).verdict, Verdict::kEquivalent);
}

TEST(Repeats, AllPassingButNotBitEqualAreEquivalentAtBest) {
  const CaseVerdict verdict = combined(
      {repeat(Verdict::kIdentical), repeat(Verdict::kIdentical), repeat(Verdict::kIdentical, "x[0]: 1 and 2")});
  EXPECT_EQ(verdict.verdict, Verdict::kEquivalent);
  EXPECT_EQ(verdict.reason, "why IDENTICAL; 3 repeats, not bit-equal: repeat 3 differs from repeat 1 in x[0]: 1 and 2");
  EXPECT_EQ(verdict.metrics[0].verdict, Verdict::kEquivalent);
}

TEST(Repeats, SomeFailingAreFlakyWithTheFirstFailure) {
  const CombinedVerdict mixed =
      combine_repeats({repeat(Verdict::kIdentical), repeat(Verdict::kDrift), repeat(Verdict::kIdentical),
                       repeat(Verdict::kCrashed), repeat(Verdict::kIdentical)},
                      5);
  EXPECT_EQ(mixed.verdict.verdict, Verdict::kFlaky);
  EXPECT_EQ(mixed.shown, 1U);
  EXPECT_EQ(mixed.verdict.reason, "passed 3 of 5 repeats; repeat 2 DRIFT: why DRIFT");
  EXPECT_EQ(mixed.verdict.metrics.back().verdict, Verdict::kFlaky);
  EXPECT_THAT(mixed.verdict.metrics.back().findings[0].message, HasSubstr("3 IDENTICAL, 1 DRIFT, 1 CRASHED"));
  EXPECT_EQ(combined({repeat(Verdict::kCrashed), repeat(Verdict::kIdentical)}).verdict, Verdict::kFlaky);
}

TEST(Repeats, NonePassingKeepsTheWorstAndInfraOnlyWhereAllAre) {
  EXPECT_EQ(combined({repeat(Verdict::kDrift), repeat(Verdict::kDiverged)}).verdict, Verdict::kDiverged);
  EXPECT_EQ(combined({repeat(Verdict::kDrift), repeat(Verdict::kInfra)}).verdict, Verdict::kDrift);
  EXPECT_EQ(combined({repeat(Verdict::kInfra), repeat(Verdict::kInfra)}).verdict, Verdict::kInfra);
  EXPECT_THAT(combined({repeat(Verdict::kDrift), repeat(Verdict::kDiverged)}).reason,
              HasSubstr("none of 2 repeats passes (1 DRIFT, 1 DIVERGED)"));
}

TEST(Repeats, WhatWasNotJudgedHidesNothing) {
  EXPECT_EQ(combined({repeat(Verdict::kSkipped), repeat(Verdict::kInfra)}).verdict, Verdict::kInfra);
  EXPECT_EQ(combined({repeat(Verdict::kSkipped), repeat(Verdict::kCrashed)}).verdict, Verdict::kCrashed);
  const CaseVerdict all = combined({repeat(Verdict::kSkipped), repeat(Verdict::kSkipped)});
  EXPECT_EQ(all.verdict, Verdict::kSkipped);
  EXPECT_EQ(all.reason, "why SKIPPED; 2 repeats");
}

TEST(Repeats, InfraBesidePassesIsInfraAndNotFlaky) {
  EXPECT_EQ(combined({repeat(Verdict::kIdentical), repeat(Verdict::kInfra)}).verdict, Verdict::kInfra);
  EXPECT_EQ(combined({repeat(Verdict::kIdentical), repeat(Verdict::kInfra), repeat(Verdict::kDrift)}).verdict,
            Verdict::kFlaky);
}

TEST(Repeats, ThoseThatDidNotRunAreCounted) {
  EXPECT_THAT(combined({repeat(Verdict::kCrashed), repeat(Verdict::kCrashed)}, 5).reason,
              HasSubstr("; 3 of 5 repeats did not run"));
}

TEST(Repeats, FoldersOfLaterRepeatsLieBelowThatOfTheFirst) {
  EXPECT_EQ(folder_of_repeat("out", "moe/a", 1), "out/cases/moe/a");
  EXPECT_EQ(folder_of_repeat("out", "moe/a", 3), "out/cases/moe/a/repeat_3");
}

TEST(RepeatsWanted, TheCommandCountsMoreThanTheCaseAndTheCaseMoreThanSetAndItsSettings) {
  RunOptions options;
  CaseSettings own;
  const std::string two = "2";
  EXPECT_EQ(*repeats_wanted(options, own, nullptr), 1);
  own.repeat = 5;
  EXPECT_EQ(*repeats_wanted(options, own, nullptr), 5);
  options.variables["N_REPEAT"] = "";
  EXPECT_EQ(*repeats_wanted(options, own, nullptr), 5);
  options.variables["N_REPEAT"] = "3";
  EXPECT_EQ(*repeats_wanted(options, own, nullptr), 3);
  EXPECT_EQ(*repeats_wanted(options, own, &two), 2);
  options.repeat = 7;
  EXPECT_EQ(*repeats_wanted(options, own, &two), 7);
}

TEST(RepeatsWanted, AreAWholeNumberOrRefused) {
  for (const char* text : {"x", "0", "-1", "1.5", "1001", "3x", "99999999999999999999", "${N}"}) {
    RunOptions options;
    const std::string written = text;
    const Result<int> of_case = repeats_wanted(options, {}, &written);
    ASSERT_FALSE(of_case.ok()) << text;
    EXPECT_THAT(of_case.status().message(), testing::HasSubstr("N_REPEAT '" + written + "'"));
    options.variables["N_REPEAT"] = text;
    EXPECT_FALSE(repeats_wanted(options, {}, nullptr).ok()) << text;
  }
}

TEST(IdOfCase, NeverNamesTheFolderOfARepeatOfAnotherCase) {
  for (const char* same : {"p", "p/child", "repeat_2", "p/repeat_", "p/repeat_2x", "p@batch", "p/repeat_2@batch"}) {
    EXPECT_EQ(id_of_case(same), same);
  }
  EXPECT_EQ(id_of_case("p/repeat_2"), "p/repeat_2~");
  EXPECT_EQ(id_of_case("p/repeat_12/q"), "p/repeat_12~/q");
  EXPECT_NE(folder_of_repeat("out", "p", 2), folder_of_repeat("out", id_of_case("p/repeat_2"), 1));
}

}  // namespace
}  // namespace assay::run
