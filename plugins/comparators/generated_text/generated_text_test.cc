#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/compare/test_plugins.h"

namespace assay::compare {
namespace {

using testing::HasSubstr;

CaseVerdict judge(const std::string& golden, const std::string& actual) {
  ResultSet reference;
  reference.requests.emplace_back();
  reference.requests[0].id = "0";
  reference.requests[0].text = golden;
  ResultSet candidate = reference;
  candidate.requests[0].text = actual;
  const JudgeOptions options = with_metrics({"generated_text"});
  return judge_case({.options = &options, .golden = &reference, .golden_missing = "", .actual = &candidate});
}

TEST(GeneratedText, PositionsAreCodePoints) {
  const CaseVerdict verdict = judge("\u201c\U0001F600\u201d gold", "\u201c\U0001F600\u201d silver");
  EXPECT_EQ(verdict.verdict, Verdict::kDiverged);
  EXPECT_EQ(verdict.metrics[0].findings[0].index, 4);
  EXPECT_THAT(verdict.reason, HasSubstr("\"\u201c\U0001F600\u201d |gold\""));
}

TEST(GeneratedText, ADifferenceInsideACodePointIsShownWhole) {
  EXPECT_THAT(judge("caf\u00e9 x", "caf\u00e8 x").reason,
              HasSubstr("golden \"caf|\u00e9 x\", result \"caf|\u00e8 x\""));
}

TEST(GeneratedText, ACutCodePointIsNoPrefix) { EXPECT_EQ(judge("abc\u00e9", "abc\xc3").verdict, Verdict::kDiverged); }

TEST(GeneratedText, AResultThatGoesOnIsToldSo) {
  const CaseVerdict verdict = judge("One two.", "One two. Three.");
  EXPECT_EQ(verdict.verdict, Verdict::kIdentical);
  EXPECT_EQ(verdict.metrics[0].findings[0].compared, 8U);
  EXPECT_THAT(verdict.metrics[0].findings[0].message, HasSubstr("8 code points equal; the result goes on for 7 more"));
}

TEST(GeneratedText, ABlankLineAtTheBeginningIsNotAllThereIsToReach) {
  EXPECT_EQ(judge("\n\nFree software", "\n").verdict, Verdict::kInvalid);
  EXPECT_EQ(judge("\n\nFree software\n\nFor all", "\n\nFree soft").verdict, Verdict::kInvalid);
  EXPECT_EQ(judge("\n\nFree software\n\nFor all", "\n\nFree software").verdict, Verdict::kIdentical);
  EXPECT_EQ(judge("\n\n", "\n").verdict, Verdict::kInvalid);
}

TEST(GeneratedText, AResultMayEndAfterTheFirstBlankLineOfTheGolden) {
  const CaseVerdict verdict = judge("One.\n\nTwo three.", "One.\n\nTwo");
  EXPECT_EQ(verdict.verdict, Verdict::kIdentical);
  EXPECT_THAT(verdict.metrics[0].findings[0].message, HasSubstr("9 code points equal; the result ends there, 7"));
  EXPECT_EQ(judge("One.\n\nTwo three.", "One").verdict, Verdict::kInvalid);
  EXPECT_EQ(judge("One.\n\nTwo three.", "One.").verdict, Verdict::kIdentical);
}

}  // namespace
}  // namespace assay::compare
