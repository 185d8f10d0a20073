#include "core/govern/record.h"

#include <gmock/gmock.h>

#include "core/govern/testing.h"

namespace assay::govern {
namespace {

using testing::HasSubstr;

constexpr const char* kRecorded =
    R"({"0": {"input_prompt": "Say", "generated_text": "a b", "generated_tokens": [1, 2], "logprobs": [-0.5, -0.25],
        "tpot": [1.0, 2.0]}, "assay": {"provenance": {"device": "old device"}}})";

std::string results(const std::string& text, const std::string& tokens, const std::string& logprobs) {
  return R"({"0": {"input_prompt": "Say", "generated_text": ")" + text + R"(", "generated_tokens": )" + tokens +
         R"(, "logprobs": )" + logprobs + R"(, "tpot": [5.0, 6.0]}})";
}

using RecordTest = GovernTest;

const MetricDrift& drift_of_metric(const Drift& drift, const std::string& metric) {
  for (const MetricDrift& one : drift.metrics) {
    if (one.metric == metric) return one;
  }
  static const MetricDrift kNone{.metric = "none"};
  return kNone;
}

TEST_F(RecordTest, ResultsThatSayWhatTheGoldenSaysWriteNothing) {
  write(kGolden, kRecorded);
  const TestCase test = test_case("[generated_tokens]");
  ASSERT_TRUE(record_text(test, results("a c", "[1, 3]", "[-0.5, -0.25]")).ok());
  ASSERT_TRUE(std::filesystem::exists(at(kPending)));
  const auto recorded = record_text(test, results("a b", "[1, 2]", "[-0.5, -0.25]"));
  ASSERT_TRUE(recorded.ok()) << recorded.status().message();
  EXPECT_EQ(recorded->pending, "");
  EXPECT_TRUE(recorded->judges);
  EXPECT_FALSE(std::filesystem::exists(at(kPending))) << "what an earlier recording proposed is gone";
}

TEST_F(RecordTest, EachMetricHasItsDriftAndAProposal) {
  write(kGolden, kRecorded);
  const TestCase test = test_case("[generated_tokens]", "ASSAY:\n  tolerance: {logprobs: 0.1}\n");
  const auto noise = record_text(test, results("a b", "[1, 2]", "[-0.5, -0.3]"));
  ASSERT_TRUE(noise.ok()) << noise.status().message();
  EXPECT_EQ(noise->drift.proposal, Proposal::kNoise);
  EXPECT_NEAR(drift_of_metric(noise->drift, "logprobs").max_abs_difference, 0.05, 1e-9);
  EXPECT_FALSE(drift_of_metric(noise->drift, "logprobs").listed);
  EXPECT_FALSE(drift_of_metric(noise->drift, "generated_tokens").changed);
  EXPECT_EQ(drift_of_metric(noise->drift, "tpot").metric, "none") << "times nobody asked for are not looked at";

  const auto drift = record_text(test, results("a b", "[1, 2]", "[-0.5, -2.0]"));
  EXPECT_EQ(drift->drift.proposal, Proposal::kDrift);
  EXPECT_NEAR(drift_of_metric(drift->drift, "logprobs").smallest_passing_tolerance, 1.75, 1e-9);

  const auto wrong = record_text(test, results("a X", "[1, 9]", "[-0.5, -2.0]"));
  EXPECT_EQ(wrong->drift.proposal, Proposal::kWrong);
  EXPECT_EQ(drift_of_metric(wrong->drift, "generated_tokens").verdict, Verdict::kDiverged);
  EXPECT_TRUE(drift_of_metric(wrong->drift, "generated_text").changed);
  ASSERT_EQ(wrong->drift.texts.size(), 1U);
  EXPECT_EQ(wrong->drift.texts[0].token, 1);
  EXPECT_THAT(wrong->drift.texts[0].before, HasSubstr("a |b"));
  EXPECT_THAT(wrong->drift.texts[0].after, HasSubstr("a |X"));
  EXPECT_THAT(wrong->drift.environment, testing::ElementsAre("device: golden old device, result new device"));
}

TEST_F(RecordTest, NanAndEmptyResultsAreNeverRecorded) {
  write(kGolden, kRecorded);
  const TestCase test = test_case("[generated_tokens]");
  for (const auto& [json, message] :
       {std::pair(results("a b", "[1, 2]", "[NaN, -0.25]"), "result has NaN at logprobs[0]"),
        std::pair(results("a b", "[1, 2]", "[-Infinity, -0.25]"), "never recorded"),
        std::pair(results("a b", "[]", "[]"), "could never pass"), std::pair(std::string("{}"), "hold no request")}) {
    const auto recorded = record_text(test, json);
    ASSERT_FALSE(recorded.ok());
    EXPECT_THAT(recorded.status().message(), HasSubstr(message));
  }
  EXPECT_FALSE(std::filesystem::exists(at(kPending)));
}

TEST_F(RecordTest, AFirstGoldenIsShownAgainstTheNearestOne) {
  write("golden_values_dev_dgx_h100.json", kRecorded);
  write("golden_values_lts_cpu_x86_64.json", kRecorded);
  const TestCase test = test_case("[generated_tokens, logprobs]");
  const auto recorded = record_text(test, results("a b", "[1, 2]", "[-0.5, -0.25]"));
  ASSERT_TRUE(recorded.ok()) << recorded.status().message();
  EXPECT_FALSE(recorded->judges);
  EXPECT_EQ(recorded->compared, at("golden_values_dev_dgx_h100.json"));
  EXPECT_EQ(recorded->pending, at(kPending)) << "equal to another platform's golden, and still the first of its own";
}

TEST_F(RecordTest, AFirstGoldenWithoutNeighboursIsNewUnlessItBreaksARule) {
  const TestCase test = test_case("[generated_text, generated_tokens, routing_indices]");
  const auto recorded = record_text(test, results("a b", "[1, 2]", "[-0.5, -0.25]"));
  ASSERT_TRUE(recorded.ok()) << recorded.status().message();
  EXPECT_EQ(recorded->compared, "");
  EXPECT_EQ(drift_of_metric(recorded->drift, "generated_tokens").proposal, Proposal::kNew);
  EXPECT_EQ(drift_of_metric(recorded->drift, "routing_indices").proposal, Proposal::kWrong)
      << "METRICS asks for values that the results lack";
}

TEST_F(RecordTest, AReadOnlyTreeHasItsPendingFilesElsewhere) {
  write(kGolden, kRecorded);
  const TestCase test = test_case("[generated_tokens]");
  EXPECT_EQ(pending_folder(test.dir, "/p"), "/p/moe/one");
  EXPECT_EQ(pending_folder(test.dir + "/", "/p"), "/p/moe/one");
  EXPECT_EQ(pending_folder(test.dir, ""), test.dir);
}

TEST_F(RecordTest, ABrokenGoldenIsNamedAndNothingWritten) {
  write(kGolden, "{\"0\": ");
  const TestCase test = test_case("[generated_tokens]");
  const auto recorded = record_text(test, results("a b", "[1, 2]", "[-0.5, -0.25]"));
  EXPECT_THAT(recorded.status().message(), HasSubstr(kGolden));
  EXPECT_FALSE(std::filesystem::exists(at(kPending)));
}

}  // namespace
}  // namespace assay::govern
