#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "assay/sdk.hpp"
#include "core/compare/test_plugins.h"
#include "core/compare/views.h"

namespace assay::compare {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const std::string kKnown = " you shall carry \u201cgold\u201d through the fire, and it shall come out as it was.";
const std::string kLater = "\n\nSection 2. Silver is another matter.";

struct Told {
  uint32_t kind = 0;
  std::string request;
  int64_t index = -1;
  uint64_t compared = 0;
  std::string message;
};

class KnownCompletionMetric : public testing::Test {
 protected:
  void SetUp() override {
    path_ = testing::TempDir() + "/known_metric_" + std::to_string(::getpid()) + ".txt";
    std::ofstream(path_, std::ios::binary)
        << "Title\r\n\r\nPrompt:" << kKnown << "\r\n\r\nSection 2. Silver is another "
        << "matter.\r\n";
    options_ = R"({"sources": [")" + path_ + R"("]})";
    golden_.prompt = "Prompt:";
  }
  void TearDown() override { std::filesystem::remove(path_); }

  std::vector<Told> judge(std::optional<std::string> result) {
    RequestRecord actual;
    actual.text = std::move(result);
    const RecordView reference(golden_);
    const RecordView candidate(actual);
    const assay_pair pair = {sdk::view("7"), &reference.record(), &candidate.record()};
    auto judgement = sdk::sized<assay_judgement>();
    judgement.metric = sdk::view("known_completion");
    judgement.pairs = &pair;
    judgement.pair_count = 1;
    judgement.options = sdk::view(options_);
    std::vector<Told> told;
    const assay_sink sink = {&told, [](void* context, const assay_finding* finding) {
                               static_cast<std::vector<Told>*>(context)->push_back(
                                   {finding->kind, std::string(sdk::text(finding->id)), finding->index,
                                    finding->compared, std::string(sdk::text(finding->message))});
                             }};
    const Status status = sdk::call((*built_comparator("known_completion"))->judge, &judgement, &sink);
    EXPECT_TRUE(status.ok()) << status.message();
    EXPECT_FALSE(told.empty());
    told.resize(std::max<size_t>(told.size(), 1));
    return told;
  }

  std::string path_;
  std::string options_;
  RequestRecord golden_;  // without a text
};

TEST_F(KnownCompletionMetric, TheSourceJudgesWhereTheGoldenHasNoText) {
  const std::vector<Told> told = judge(kKnown);
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].kind, ASSAY_FINDING_EQUAL);
  EXPECT_EQ(told[0].compared, 74U);
  EXPECT_EQ(told[0].request, "7");
}

TEST_F(KnownCompletionMetric, OneWrongCodePointDiffersWhateverTheGoldenSays) {
  std::string wrong = kKnown;
  wrong.replace(wrong.find("fire"), 4, "rain");
  golden_.text = wrong;  // a golden refreshed with a wrong text
  const std::vector<Told> told = judge(wrong);
  EXPECT_EQ(told[0].kind, ASSAY_FINDING_DIFFERS);
  EXPECT_EQ(told[0].index, 36);
  EXPECT_THAT(told[0].message,
              AllOf(HasSubstr("the |fire"), HasSubstr("the |rain"), HasSubstr("36 code points match before it")));
}

TEST_F(KnownCompletionMetric, TheBlankLineMustBeReached) {
  golden_.text = kKnown.substr(0, 12);  // a golden that stopped early excuses nothing
  for (const size_t length : {size_t{1}, size_t{12}, kKnown.size() - 1}) {
    const std::vector<Told> told = judge(kKnown.substr(0, length));
    EXPECT_EQ(told[0].kind, ASSAY_FINDING_BROKEN) << length;
    EXPECT_THAT(told[0].message, AllOf(HasSubstr("truncated"), HasSubstr("of the 74 code points")));
  }
  EXPECT_EQ(judge("")[0].kind, ASSAY_FINDING_BROKEN);
  EXPECT_EQ(judge(std::nullopt)[0].kind, ASSAY_FINDING_MISSING);
}

TEST_F(KnownCompletionMetric, WhatFollowsTheBlankLineIsReported) {
  const std::vector<Told> same = judge(kKnown + "\n\nSection 2. Sil");
  ASSERT_EQ(same.size(), 2U);
  EXPECT_EQ(same[0].kind, ASSAY_FINDING_EQUAL);
  EXPECT_EQ(same[0].compared, 74U);
  EXPECT_EQ(same[1].kind, ASSAY_FINDING_NOTE);
  EXPECT_THAT(same[1].message, AllOf(HasSubstr("goes on for 16 code points"), HasSubstr("do not contradict")));
  const std::vector<Told> other = judge(kKnown + "\n\nSection 9.");
  ASSERT_EQ(other.size(), 2U);
  EXPECT_EQ(other[0].kind, ASSAY_FINDING_EQUAL);
  EXPECT_THAT(other[1].message, HasSubstr("Section |2"));
  const std::vector<Told> no_blank_line = judge(kKnown + " And more.");
  EXPECT_EQ(no_blank_line[0].kind, ASSAY_FINDING_EQUAL);
  EXPECT_THAT(no_blank_line[1].message, HasSubstr("part from the source at code point 74"));
}

TEST_F(KnownCompletionMetric, WithoutASourceTheGoldensTextJudges) {
  options_ = "{}";
  EXPECT_EQ(judge(kKnown)[0].kind, ASSAY_FINDING_BROKEN);  // neither source nor text
  golden_.text = kKnown + "\n\nOne.";
  EXPECT_EQ(judge(kKnown + "\n\nTwo.")[0].kind, ASSAY_FINDING_EQUAL);
  EXPECT_EQ(judge(kKnown.substr(0, 30))[0].kind, ASSAY_FINDING_BROKEN);
  EXPECT_EQ(judge("Something else entirely, and long enough to be judged.")[0].kind, ASSAY_FINDING_DIFFERS);
  golden_.text = std::string(39, 'x') + "\n\n" + std::string(100, 'y');
  const std::vector<Told> told = judge(*golden_.text);
  EXPECT_EQ(told[0].kind, ASSAY_FINDING_BROKEN);
  EXPECT_THAT(told[0].message, HasSubstr("39 code points before its first blank line; at least 40"));
}

TEST_F(KnownCompletionMetric, APromptWithoutOnePlaceInTheSourcesIsBroken) {
  golden_.prompt = "nowhere";
  EXPECT_THAT(judge(kKnown)[0].message, HasSubstr("occurs 0 times"));
  golden_.prompt = "e";
  EXPECT_EQ(judge(kKnown)[0].kind, ASSAY_FINDING_BROKEN);
  golden_.prompt = std::nullopt;
  EXPECT_THAT(judge(kKnown)[0].message, HasSubstr("input_prompt"));
}

TEST_F(KnownCompletionMetric, AMissingSourceIsNamed) {
  options_ = R"({"sources": ["/nowhere/gpl.txt"]})";
  const std::vector<Told> told = judge(kKnown);
  EXPECT_EQ(told[0].kind, ASSAY_FINDING_BROKEN);
  EXPECT_EQ(told[0].request, "");
  EXPECT_THAT(told[0].message, HasSubstr("/nowhere/gpl.txt"));
}

TEST(KnownCompletion, IsAMetricLikeAnyOther) {
  JudgeOptions options = with_metrics({"known_completion"});
  ResultSet golden;
  golden.requests.emplace_back();
  golden.requests[0].id = "0";
  golden.requests[0].text = kKnown + kLater;
  ResultSet actual = golden;
  const auto judged = [&] {
    return judge_case({.options = &options, .golden = &golden, .golden_missing = "", .actual = &actual});
  };
  EXPECT_EQ(judged().verdict, Verdict::kIdentical);
  actual.requests[0].text = "x" + kKnown;
  EXPECT_EQ(judged().verdict, Verdict::kDiverged);
  actual.requests[0].text = kKnown.substr(0, 50);
  EXPECT_EQ(judged().verdict, Verdict::kInvalid);
  options.capabilities = ASSAY_CAP_TOKENS;
  EXPECT_EQ(judged().verdict, Verdict::kNotComparable);
  options.capabilities.reset();
  options.tolerances["known_completion"] = 1;
  EXPECT_EQ(judged().verdict, Verdict::kInvalid);
}

}  // namespace
}  // namespace assay::compare
