#include "core/compare/known_completion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "core/compare/test_plugins.h"
#include "core/golden/text.h"

namespace assay::compare {
namespace {

using testing::HasSubstr;

const std::string kKnown = " you shall carry \u201cgold\u201d through the fire, and it shall come out as it was.";
const std::string kLater = "\n\nSection 2. Silver is another matter.";
const std::vector<SourceText> kSources = {{"licence.txt", "Title\n\nPrompt:" + kKnown + kLater}, {"b.txt", "other"}};

KnownRequest request(std::optional<std::string_view> golden, std::optional<std::string_view> actual) {
  return {.id = "0", .prompt = "Prompt:", .golden_text = golden, .actual_text = actual};
}

std::string reference(const KnownRequest& known) {
  const Result<std::string> text = known_reference(kSources, known);
  EXPECT_TRUE(text.ok()) << text.status().message();
  return text.ok() ? *text : "";
}

std::string error(const std::vector<SourceText>& sources, const KnownRequest& known) {
  const Result<std::string> text = known_reference(sources, known);
  EXPECT_EQ(text.status().code(), StatusCode::kInvalid);
  return text.status().message();
}

TEST(KnownReference, ReachesAsFarAsTheResultAndBringsTheBlankLine) {
  EXPECT_EQ(reference(request(kKnown, kKnown)), kKnown);
  EXPECT_EQ(reference(request(kKnown + kLater, kKnown + "x")), kKnown + "\n\n");
  EXPECT_EQ(reference(request(kKnown, kKnown + "\n\nSection 3.")), kKnown + "\n\nSection 2.");
}

TEST(KnownReference, AResultMayOnlyStopEarlyWhereTheGoldenDid) {
  EXPECT_EQ(reference(request(kKnown, kKnown.substr(0, 10))), kKnown);
  EXPECT_EQ(reference(request(kKnown.substr(0, 12), kKnown.substr(0, 10))), kKnown.substr(0, 12));
  EXPECT_EQ(reference(request(kKnown.substr(0, 10), kKnown.substr(0, 12))), kKnown.substr(0, 12));
  EXPECT_EQ(reference(request(std::nullopt, kKnown.substr(0, 12))), kKnown);
}

TEST(KnownReference, AResultOutOfTokensMayEndBehindFortyCodePoints) {
  const std::string_view whole = kKnown;  // requests hold views: of this, not of copies
  KnownRequest known = request(whole, whole.substr(0, 45));
  known.out_of_tokens = true;
  EXPECT_EQ(text::count(reference(known)), text::count(whole.substr(0, 45)));
  known.actual_text = whole.substr(0, 10);
  EXPECT_EQ(text::count(reference(known)), kLeastKnownCompletion);
  known.golden_text = whole.substr(0, 12);
  EXPECT_EQ(reference(known), whole.substr(0, 12));
  known.golden_text = std::nullopt;
  EXPECT_EQ(text::count(reference(known)), kLeastKnownCompletion);
}

TEST(KnownReference, ThePromptMustOccurExactlyOnce) {
  KnownRequest known = request(kKnown, kKnown);
  known.prompt = "nowhere";
  EXPECT_THAT(error(kSources, known), HasSubstr("occurs 0 times in licence.txt, b.txt"));
  known.prompt = std::nullopt;
  EXPECT_THAT(error(kSources, known), HasSubstr("input_prompt"));
  std::vector<SourceText> twice = kSources;
  twice.push_back({"c.txt", "x\ny\nPrompt: again"});
  EXPECT_THAT(error(twice, request(kKnown, kKnown)), HasSubstr("occurs 2 times at licence.txt:3, c.txt:3"));
}

TEST(KnownReference, TooLittleTextBeforeTheBlankLineProvesNothing) {
  const auto sources = [](size_t length) {
    return std::vector<SourceText>{
        {"s.txt", "Prompt:" + std::string(length, 'x') + "\n\nand so on and on and on and on"}};
  };
  EXPECT_THAT(error(sources(39), request(std::nullopt, "x")), HasSubstr("only 39 code points"));
  EXPECT_TRUE(known_reference(sources(40), request(std::nullopt, "x")).ok());
}

TEST(KnownReference, AGoldenThatContradictsTheSourceIsRefused) {
  std::string wrong = kKnown;
  wrong.replace(wrong.find("fire"), 4, "rain");
  EXPECT_THAT(error(kSources, request(wrong, kKnown)), HasSubstr("contradicts the known completion at code point 36"));
  EXPECT_TRUE(known_reference(kSources, request(kKnown + "\n\nSomething else follows.", kKnown)).ok());
}

TEST(OwnReference, NeedsFortyCodePointsBeforeItsBlankLine) {
  EXPECT_TRUE(check_own_reference(request(std::string(40, 'x'), "x")).ok());
  EXPECT_FALSE(check_own_reference(request(std::string(39, 'x'), "x")).ok());
  EXPECT_FALSE(check_own_reference(request(std::string(39, 'x') + "\n\nlong text that does not count", "x")).ok());
  EXPECT_FALSE(check_own_reference(request(std::nullopt, "x")).ok());
}

class KnownCase : public testing::Test {
 protected:
  void SetUp() override {
    path_ = testing::TempDir() + "/known_" + std::to_string(::getpid()) + ".txt";
    std::ofstream(path_, std::ios::binary) << "Title\r\n\r\nPrompt:" << kKnown << "\r\n\r\nSection 2. Silver.\r\n";
    options_ = with_metrics({"generated_text"});
    options_.known = {true, {path_}};
  }
  void TearDown() override { std::filesystem::remove(path_); }
  CaseVerdict judge(const std::string& golden, const std::string& actual, const std::vector<int32_t>& tokens = {},
                    const std::vector<int32_t>& golden_tokens = {}) {
    ResultSet reference;
    reference.requests.emplace_back();
    reference.requests[0].id = "0";
    reference.requests[0].text = golden;
    ResultSet candidate = reference;
    candidate.requests[0].prompt = "Prompt:";
    candidate.requests[0].text = actual;
    if (!tokens.empty()) candidate.requests[0].tokens = tokens;
    if (!golden_tokens.empty()) reference.requests[0].tokens = golden_tokens;
    return judge_case({.options = &options_, .golden = &reference, .golden_missing = "", .actual = &candidate});
  }

  std::string path_;
  JudgeOptions options_;
};

TEST_F(KnownCase, TheTextOnlyFormWorksWithThePromptOfTheResult) {
  EXPECT_EQ(judge(kKnown, kKnown).verdict, Verdict::kIdentical);
  EXPECT_EQ(judge(kKnown.substr(0, kKnown.size() - 5), kKnown + "\n\nSec").verdict, Verdict::kIdentical);
}

TEST_F(KnownCase, DifferencesAfterTheBlankLineAreNotedOnly) {
  const CaseVerdict verdict = judge(kKnown, kKnown + "\n\nSection 9. Iron.");
  EXPECT_EQ(verdict.verdict, Verdict::kIdentical);
  ASSERT_EQ(verdict.metrics[0].findings.size(), 2U);
  EXPECT_TRUE(verdict.metrics[0].findings[1].note);
  EXPECT_THAT(verdict.metrics[0].findings[1].message, HasSubstr("Section |2"));
  EXPECT_EQ(judge(kKnown, kKnown + " And more without a blank line.").verdict, Verdict::kIdentical);
}

TEST_F(KnownCase, TextBeyondTheGoldenIsJudgedByTheSource) {
  std::string wrong = kKnown;
  wrong.replace(wrong.find("as it was"), 9, "as a stone");
  const CaseVerdict verdict = judge(kKnown.substr(0, 45), wrong);
  EXPECT_EQ(verdict.verdict, Verdict::kDiverged);
  EXPECT_THAT(verdict.reason, HasSubstr("as |"));
}

TEST_F(KnownCase, AMereBeginningIsTruncated) {
  const CaseVerdict verdict = judge(kKnown, kKnown.substr(0, 20));
  EXPECT_EQ(verdict.verdict, Verdict::kInvalid);
  EXPECT_THAT(verdict.reason, HasSubstr("truncated"));
  EXPECT_EQ(judge(kKnown.substr(0, 45), kKnown.substr(0, 20)).verdict, Verdict::kInvalid);
}

TEST_F(KnownCase, AResultOutOfTokensIsJudgedAsFarAsItGoesAndTheRestIsNoted) {
  options_.most_tokens = 3;
  const std::string beginning = kKnown.substr(0, 60);
  const CaseVerdict verdict = judge(kKnown, beginning, {1, 2, 3});
  EXPECT_EQ(verdict.verdict, Verdict::kIdentical) << verdict.reason;
  ASSERT_EQ(verdict.metrics[0].metric, kRequestsMetric);
  ASSERT_EQ(verdict.metrics[0].findings.size(), 2U);
  EXPECT_THAT(verdict.metrics[0].findings[0].message, HasSubstr("all 3 tokens that the case asks for are used up"));
  EXPECT_THAT(verdict.metrics[0].findings[1].message,
              HasSubstr("not judged, as the golden does not hold them: generated_tokens"));
  EXPECT_EQ(judge(kKnown, beginning, {1, 2}).verdict, Verdict::kInvalid);
  EXPECT_EQ(judge(kKnown, beginning, {}).verdict, Verdict::kInvalid);
  EXPECT_EQ(judge(kKnown, kKnown.substr(0, 20), {1, 2, 3}).verdict, Verdict::kInvalid);
  EXPECT_EQ(judge(kKnown, beginning + "x", {1, 2, 3}).verdict, Verdict::kDiverged);
}

TEST_F(KnownCase, ATextCutShorterThanThatOfAsManyTokensIsTruncated) {
  options_.most_tokens = 3;
  const std::string beginning = kKnown.substr(0, 60);
  const CaseVerdict verdict = judge(kKnown, beginning, {1, 2, 3}, {1, 2, 3});
  EXPECT_EQ(verdict.verdict, Verdict::kInvalid);
  EXPECT_THAT(verdict.reason, HasSubstr("truncated"));
  EXPECT_EQ(judge(kKnown, kKnown, {1, 2, 3}, {1, 2, 3}).verdict, Verdict::kIdentical);
  EXPECT_EQ(judge(kKnown, beginning, {1, 2, 3}, {1, 2, 3, 4}).verdict, Verdict::kIdentical);
}

TEST_F(KnownCase, AMissingSourceIsInvalidAndNamed) {
  options_.known.sources = {"/nowhere/gpl.txt"};
  const CaseVerdict verdict = judge(kKnown, kKnown);
  EXPECT_EQ(verdict.verdict, Verdict::kInvalid);
  EXPECT_THAT(verdict.reason, HasSubstr("/nowhere/gpl.txt"));
  options_.known.sources = {testing::TempDir()};
  EXPECT_EQ(judge(kKnown, kKnown).verdict, Verdict::kInvalid);
}

TEST_F(KnownCase, WithoutASourceTheGoldenIsTheKnownCompletion) {
  options_.known.sources.clear();
  EXPECT_EQ(judge(kKnown + "\n\nOne.", kKnown + "\n\nTwo.").verdict, Verdict::kIdentical);
  EXPECT_EQ(judge(kKnown + "\n\nOne.", kKnown.substr(0, 50)).verdict, Verdict::kInvalid);
  EXPECT_EQ(judge("too short", "too short").verdict, Verdict::kInvalid);
}

}  // namespace
}  // namespace assay::compare
