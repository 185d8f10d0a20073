#include "core/govern/calibrate.h"

#include <gmock/gmock.h>

#include "core/govern/accept.h"
#include "core/govern/testing.h"

namespace assay::govern {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

CalibrationRun repeat(const std::string& shape, const std::string& tokens, const std::string& logprobs,
                      const std::string& tpot = "[9.0, 1.0, 1.0]") {
  return {shape, *read_results_text(R"({"0": {"generated_text": "x", "generated_tokens": )" + tokens +
                                        R"(, "logprobs": )" + logprobs + R"(, "tpot": )" + tpot + "}}",
                                    shape)};
}

TEST(Calibrate, LogprobNoiseEndsWhereTokensPart) {
  const auto made = calibrate({repeat("batch 1", "[1, 2, 3]", "[-1.0, -2.0, -3.0, -4.0]"),
                               repeat("batch 4", "[1, 2, 3]", "[-1.0, -2.25, -3.0, -4.0]"),
                               repeat("batch 4", "[1, 9, 3]", "[-1.0, -2.0, -30.0, -40.0]")});
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_THAT(made->noise.shapes, ElementsAre("batch 1", "batch 4"));
  const MetricNoise& noise = made->noise.metrics.at("logprobs");
  EXPECT_EQ(noise.max, 0.25);
  EXPECT_EQ(noise.samples, 4U + 2U + 2U) << "prompt and generated positions before the first that parts";
  EXPECT_EQ(made->metrics[0].metric, "generated_tokens");
  EXPECT_EQ(made->metrics[0].differing, 2U);
  ASSERT_EQ(made->notes.size(), 1U);
  EXPECT_THAT(calibration_text(*made), HasSubstr("    logprobs: 0.5\n"));
}

TEST(Calibrate, SpeedIsComparedWithinAShapeWithoutItsWarmUp) {
  const std::string tokens = "[1, 2, 3]";
  const std::string logprobs = "[-1.0, -2.0, -3.0]";
  const auto made = calibrate(
      {repeat("batch 1", tokens, logprobs, "[90.0, 1.0, 1.0]"), repeat("batch 1", tokens, logprobs, "[5.0, 1.1, 1.1]"),
       repeat("batch 4", tokens, logprobs, "[5.0, 7.0, 7.0]"), repeat("batch 4", tokens, logprobs, "[5.0, 7.0, 7.0]")});
  ASSERT_TRUE(made.ok());
  EXPECT_NEAR(made->noise.metrics.at("tpot").relative, 0.1 / 1.05, 1e-12);
  EXPECT_EQ(made->noise.metrics.at("logprobs").max, 0);
  const std::string text = calibration_text(*made);
  EXPECT_THAT(text, HasSubstr("    tpot: 0.3\n"));
  EXPECT_THAT(text, testing::Not(HasSubstr("    logprobs:")));
}

TEST(Calibrate, RoutingCountsSetsAndMeasuresMargins) {
  const auto routed = [](const std::string& experts, const std::string& margins) {
    return CalibrationRun{"batch 1", *read_results_text(R"({"0": {"generated_tokens": [1], "routing_indices": )" +
                                                            experts + R"(, "routing_margins": )" + margins + "}}",
                                                        "x")};
  };
  const auto made = calibrate(
      {routed("[[[1, 2]], [[3, 4]]]", "[[0.5], [0.25]]"), routed("[[[2, 1]], [[3, 5]]]", "[[0.5], [0.125]]")});
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_EQ(made->metrics[1].metric, "routing_indices");
  EXPECT_EQ(made->metrics[1].differing, 1U);
  EXPECT_EQ(made->metrics[1].compared, 2U);
  EXPECT_EQ(made->noise.metrics.at("routing_indices").max, 0.125);
}

TEST(Calibrate, WhatCannotBeComparedIsNamed) {
  const CalibrationRun one = repeat("batch 1", "[1]", "[-1.0]");
  EXPECT_THAT(calibrate({one}).status().message(), HasSubstr("two repeats"));
  EXPECT_THAT(calibrate({one, repeat("batch 1", "[1]", "[NaN]")}).status().message(), HasSubstr("NaN"));
  CalibrationRun other = one;
  other.results.requests[0].id = "1";
  EXPECT_THAT(calibrate({one, other}).status().message(), HasSubstr("request 0 is missing"));
}

TEST(Calibrate, ProposalsAreRoundedUpToOneDigit) {
  EXPECT_EQ(proposed_tolerance({.metric = "logprobs", .noise = {.max = 0.00123}}), 0.003);
  EXPECT_EQ(proposed_tolerance({.metric = "logprobs", .noise = {.max = 0.0005}}), 0.001);
  EXPECT_EQ(proposed_tolerance({.metric = "logprobs", .noise = {}}), 0);
  EXPECT_EQ(proposed_tolerance({.metric = "tpot", .noise = {.relative = 0.05}}), 0.2);
}

class WriteNoise : public GovernTest {};

TEST_F(WriteNoise, NoiseWaitsInAPendingGoldenAndIsAcceptedByItsName) {
  const std::string old = R"({"0": {"input_prompt": "Say", "generated_text": "a", "generated_tokens": [1]}})";
  const TestCase test = test_case("[generated_tokens]");
  Recording recording;
  recording.test = &test;
  recording.environment = "dev";
  recording.platform = "cpu_x86_64";
  NoiseModel noise{.repeats = 3, .device = "d"};
  noise.metrics["logprobs"] = {0.25, 0.125, 0, 7};
  EXPECT_EQ(write_noise(recording, noise).status().code(), StatusCode::kNotFound);
  write(kGolden, old);
  const auto path = write_noise(recording, noise);
  ASSERT_TRUE(path.ok()) << path.status().message();
  EXPECT_EQ(text_of(kGolden), old) << "never straight into the golden";
  ASSERT_TRUE(
      record_text(test, R"({"0": {"input_prompt": "Say", "generated_text": "b", "generated_tokens": [2]}})").ok());
  const auto pending = read_pending(*path, test.dir);
  ASSERT_TRUE(pending->meta.noise.has_value()) << "recording keeps the noise";
  const auto accepted = accept(test, *pending, {{kNoiseMetric}, "Ada", "measured", "now"}, compare::built_comparator);
  ASSERT_TRUE(accepted.ok()) << accepted.status().message();
  EXPECT_THAT(accepted->remaining, testing::Not(testing::Contains(kNoiseMetric)));
  const auto meta = parse_golden_meta(read_results(at(kGolden))->extra);
  EXPECT_EQ(meta->noise->metrics.at("logprobs").max, 0.25);
  EXPECT_EQ(read_results(at(kGolden))->requests[0].text, "a");
}

}  // namespace
}  // namespace assay::govern
