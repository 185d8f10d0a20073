#include "tools/self_test/kill_table.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

namespace assay::self_test {
namespace {

using testing::HasSubstr;
using testing::Not;

Trial trial(uint64_t seed, Fate fate, Verdict verdict) {
  return {.fault = "nan_logprob",
          .seed = seed,
          .fate = fate,
          .verdict = verdict,
          .place = "request " + std::to_string(seed % 2),
          .reason = "first line\nsecond line",
          .reproduce = "assay run there"};
}

SelfTestReport report_of(std::vector<Trial> trials) {
  SelfTestReport report;
  report.faults.push_back({.fault = {.name = "nan_logprob",
                                     .family = "numbers",
                                     .metric = "logprobs",
                                     .verdicts = {Verdict::kInvalid},
                                     .places = "",
                                     .what = ""},
                           .metrics = "logprobs",
                           .trials = std::move(trials)});
  report.controls.push_back({.name = "batch_1", .what = "batches of 1", .verdict = Verdict::kEquivalent});
  return report;
}

TEST(KillTable, AllKilledAndNoAlarmPasses) {
  const SelfTestReport report =
      report_of({trial(0, Fate::kKilled, Verdict::kInvalid), trial(1, Fate::kKilled, Verdict::kInvalid)});
  EXPECT_TRUE(report.passed());
  const std::string text = table_text(report);
  EXPECT_THAT(text, HasSubstr("2 of 2 faulty runs killed (100.0 %), 1 faults; 0 alarms of 1 benign changes"));
  EXPECT_THAT(text, HasSubstr("2 INVALID"));
  EXPECT_THAT(text, Not(HasSubstr("again:")));
}

TEST(KillTable, AnEscapeFailsAndShowsSeedPlaceAndCommand) {
  const SelfTestReport report =
      report_of({trial(0, Fate::kKilled, Verdict::kInvalid), trial(7, Fate::kEscaped, Verdict::kEquivalent)});
  EXPECT_FALSE(report.passed());
  const std::string text = table_text(report);
  EXPECT_THAT(text, HasSubstr("escaped nan_logprob seed 7: EQUIVALENT: first line\\nsecond line"));
  EXPECT_THAT(text, HasSubstr("planted: request 1"));
  EXPECT_THAT(text, HasSubstr("again: assay run there"));
  EXPECT_THAT(text, HasSubstr("1 of 2 faulty runs killed (50.0 %)"));
}

TEST(KillTable, AnAlarmFailsAndAnAbsentMachineDoesNot) {
  SelfTestReport report = report_of({trial(0, Fate::kKilled, Verdict::kInvalid)});
  report.controls[0].verdict = Verdict::kInvalid;
  report.controls[0].absent = true;
  EXPECT_TRUE(report.passed());
  EXPECT_THAT(table_text(report), HasSubstr("not on this machine"));
  report.controls[0].absent = false;
  EXPECT_FALSE(report.passed());
  EXPECT_THAT(table_text(report), HasSubstr("alarm batch_1: INVALID"));
}

TEST(KillTable, NothingTriedDoesNotPass) {
  EXPECT_FALSE(SelfTestReport().passed());
  EXPECT_FALSE(report_of({}).faults[0].passed());
}

TEST(KillTable, JsonHasCountsAndEveryTrialThatWasNoKill) {
  const auto json = nlohmann::json::parse(
      table_json(report_of({trial(0, Fate::kKilled, Verdict::kInvalid), trial(2, Fate::kMisnamed, Verdict::kDrift)})));
  EXPECT_EQ(json["passed"], false);
  EXPECT_EQ(json["trials"], 2);
  EXPECT_EQ(json["killed"], 1);
  EXPECT_EQ(json["faults"][0]["places"], 1) << "both trials struck request 0";
  EXPECT_EQ(json["faults"][0]["verdicts"], (nlohmann::json{{"INVALID", 1}, {"DRIFT", 1}}));
  ASSERT_EQ(json["faults"][0]["not_killed"].size(), 1U);
  EXPECT_EQ(json["faults"][0]["not_killed"][0]["fate"], "misnamed");
  EXPECT_EQ(json["controls"][0]["alarm"], false);
}

}  // namespace
}  // namespace assay::self_test
