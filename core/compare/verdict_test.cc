#include "assay/verdict.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

TEST(Verdict, NamesGoThereAndBack) {
  for (int i = 0; i <= static_cast<int>(Verdict::kCrashed); ++i) {
    const auto verdict = static_cast<Verdict>(i);
    EXPECT_EQ(parse_verdict(to_string(verdict)), verdict);
  }
  EXPECT_EQ(to_string(Verdict::kNotComparable), "NOT_COMPARABLE");
  EXPECT_EQ(to_string(Verdict::kXfail), "XFAIL");
  EXPECT_EQ(to_string(Verdict::kCrashed), "CRASHED");
  EXPECT_FALSE(parse_verdict("identical").has_value());
}

TEST(Verdict, OnlyFourPassAndStrictRefusesEquivalent) {
  int passing = 0;
  for (int i = 0; i <= static_cast<int>(Verdict::kCrashed); ++i) passing += passes(static_cast<Verdict>(i)) ? 1 : 0;
  EXPECT_EQ(passing, 4);
  EXPECT_TRUE(passes(Verdict::kEquivalent));
  EXPECT_FALSE(passes(Verdict::kEquivalent, true));
  EXPECT_TRUE(passes(Verdict::kIdentical, true));
  EXPECT_FALSE(passes(Verdict::kSkipped));
  EXPECT_FALSE(passes(Verdict::kXpass));
}

TEST(Verdict, TheWorstWins) {
  EXPECT_EQ(worst(Verdict::kIdentical, Verdict::kDrift), Verdict::kDrift);
  EXPECT_EQ(worst(Verdict::kInvalid, Verdict::kNotComparable), Verdict::kInvalid);
}

TEST(ExitCode, FollowsTheVerdicts) {
  EXPECT_EQ(exit_code({Verdict::kIdentical, Verdict::kEquivalent}), 0);
  EXPECT_EQ(exit_code({Verdict::kIdentical, Verdict::kEquivalent}, true), 1);
  EXPECT_EQ(exit_code({Verdict::kIdentical, Verdict::kSkipped}), 0);
  EXPECT_EQ(exit_code({Verdict::kIdentical, Verdict::kNotComparable}), 1);
  EXPECT_EQ(exit_code({Verdict::kIdentical, Verdict::kInfra}), 3);
  EXPECT_EQ(exit_code({Verdict::kInfra, Verdict::kDiverged}), 1);
  EXPECT_EQ(exit_code({Verdict::kCrashed}), 1);
  EXPECT_EQ(exit_code({Verdict::kXpass}), 1);
  EXPECT_EQ(exit_code({}), 4);
  EXPECT_EQ(exit_code({Verdict::kSkipped, Verdict::kSkipped}), 4);
}

}  // namespace
}  // namespace assay
