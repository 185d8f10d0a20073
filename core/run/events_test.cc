#include "core/run/events.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/run/worker_plan.h"

namespace assay::run {
namespace {

using Json = nlohmann::ordered_json;
using ::testing::HasSubstr;

CaseVerdict sample() {
  Finding finding{.verdict = Verdict::kDrift,
                  .note = true,
                  .request = "3",
                  .index = 7,
                  .compared = 80,
                  .differing = 2,
                  .max_abs_difference = 0.25,
                  .smallest_passing_tolerance = std::numeric_limits<double>::infinity(),
                  .message = "request 3: \xff beyond"};
  return {Verdict::kDrift, "why", "golden.json", {{"logprobs", Verdict::kDrift, {finding}}}};
}

TEST(Events, VerdictSurvivesTheWayThroughALine) {
  Json event = make_event(event::kCaseFinished);
  event["verdict"] = to_json(sample());
  const Result<Json> back = parse_line(to_line(event));
  ASSERT_TRUE(back.ok());
  const Result<CaseVerdict> verdict = parse_case_verdict((*back)["verdict"]);
  ASSERT_TRUE(verdict.ok()) << verdict.status().message();
  EXPECT_EQ(verdict->verdict, Verdict::kDrift);
  EXPECT_EQ(verdict->golden, "golden.json");
  ASSERT_EQ(verdict->metrics.size(), 1u);
  const Finding& finding = verdict->metrics[0].findings[0];
  EXPECT_TRUE(finding.note);
  EXPECT_EQ(finding.index, 7);
  EXPECT_EQ(finding.compared, 80u);
  EXPECT_EQ(finding.max_abs_difference, 0.25);
  EXPECT_EQ(finding.smallest_passing_tolerance, std::numeric_limits<double>::infinity());
  EXPECT_THAT(finding.message, HasSubstr("\xef\xbf\xbd beyond"));
}

TEST(Events, SummarySurvivesNaN) {
  CaseSummary summary;
  summary.engine = "static_legacy";
  summary.requests = 4;
  summary.decode_rate = std::numeric_limits<double>::quiet_NaN();
  summary.max_abs_difference = 2e-6;
  summary.has_difference = true;
  const Result<CaseSummary> back = parse_case_summary(Json::parse(to_json(summary).dump()));
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back->engine, "static_legacy");
  EXPECT_EQ(back->requests, 4u);
  EXPECT_TRUE(std::isnan(back->decode_rate));
  EXPECT_EQ(back->max_abs_difference, 2e-6);
  EXPECT_TRUE(back->has_difference);
}

TEST(Events, LinesThatAreNoEventsAreRefused) {
  for (const char* line : {"", "{", "[]", "7", "{}", "{\"event\": 7}", "{\"event\": \"a\"} trailing"}) {
    EXPECT_FALSE(parse_line(line).ok()) << line;
  }
  EXPECT_TRUE(parse_line("{\"event\": \"from a later version\"}").ok());
}

TEST(Events, UnknownVerdictIsAnError) {
  EXPECT_EQ(parse_case_verdict(Json{{"verdict", "SPLENDID"}}).status().code(), StatusCode::kInvalid);
  EXPECT_EQ(parse_case_verdict(Json()).status().code(), StatusCode::kInvalid);
}

TEST(WorkerPlan, SurvivesTheWayThroughJson) {
  WorkerPlan plan;
  plan.worker = "w001";
  plan.engine = "static_legacy";
  plan.plugins.plugin_path = {"a", "b"};
  CaseOrder order;
  order.id = "moe/x";
  order.prompts = {"one\n\ntwo", "\u201cthree\u201d"};
  order.temperature = 0.1;
  order.seed = std::numeric_limits<uint64_t>::max();
  plan.cases = {order};
  const Result<WorkerPlan> back = parse_worker_plan(to_json(plan));
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_EQ(back->worker, "w001");
  EXPECT_EQ(back->plugins.plugin_path.size(), 2u);
  ASSERT_EQ(back->cases.size(), 1u);
  EXPECT_EQ(back->cases[0].prompts, order.prompts);
  EXPECT_EQ(back->cases[0].temperature, 0.1);
  EXPECT_EQ(back->cases[0].seed, order.seed);
}

TEST(WorkerPlan, OfAnotherBuildIsRefused) {
  EXPECT_THAT(parse_worker_plan("{\"schema\": 99}").status().message(), HasSubstr("different builds"));
  EXPECT_EQ(parse_worker_plan("nonsense").status().code(), StatusCode::kInvalid);
}

}  // namespace
}  // namespace assay::run
