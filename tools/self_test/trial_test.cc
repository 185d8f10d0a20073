#include "tools/self_test/trial.h"

#include <gmock/gmock.h>

namespace assay::self_test {
namespace {

const FaultRow kFault = {.name = "wrong_logprob",
                         .family = "numbers",
                         .metric = "logprobs",
                         .verdicts = {Verdict::kDrift},
                         .places = "",
                         .what = ""};

Observation seen(Verdict verdict) { return {.verdict = verdict, .place = "request 1"}; }

TEST(Trial, AVerdictThatFitsIsAKill) { EXPECT_EQ(fate_of(kFault, seen(Verdict::kDrift)), Fate::kKilled); }

TEST(Trial, AnythingThatPassesEscapes) {
  for (const Verdict verdict : {Verdict::kIdentical, Verdict::kEquivalent, Verdict::kXfail, Verdict::kWaived}) {
    EXPECT_EQ(fate_of(kFault, seen(verdict)), Fate::kEscaped) << to_string(verdict);
  }
}

TEST(Trial, AFailureByAnotherNameIsNoKill) {
  for (const Verdict verdict : {Verdict::kDiverged, Verdict::kInvalid, Verdict::kCrashed, Verdict::kNotComparable}) {
    EXPECT_EQ(fate_of(kFault, seen(verdict)), Fate::kMisnamed) << to_string(verdict);
  }
}

TEST(Trial, AFaultThatWasNotPlantedIsNoKill) {
  Observation none = seen(Verdict::kDrift);
  none.place = "";
  EXPECT_EQ(fate_of(kFault, none), Fate::kNoEffect);
}

TEST(Trial, AResultLikeTheGoldenIsNoKillUnlessTheFaultIsNotInIt) {
  Observation equal = seen(Verdict::kDrift);
  equal.same_as_golden = true;
  EXPECT_EQ(fate_of(kFault, equal), Fate::kNoEffect);
  equal.verdict = Verdict::kIdentical;
  EXPECT_EQ(fate_of(kFault, equal), Fate::kNoEffect);
  equal.shows_in_result = false;
  EXPECT_EQ(fate_of(kFault, equal), Fate::kEscaped);
}

TEST(Trial, FailuresOfTheMachineSayNothing) {
  EXPECT_EQ(fate_of(kFault, seen(Verdict::kInfra)), Fate::kNotRun);
  EXPECT_EQ(fate_of(kFault, seen(Verdict::kSkipped)), Fate::kNotRun);
}

TEST(Trial, PlaceIsTheFirstLineOfThisFault) {
  const std::string log = "info: x\ninfo: planted wrong_logprob: request 3, token 4\ninfo: planted wrong_logprob: b\n";
  EXPECT_EQ(place_in_log(log, "wrong_logprob"), "request 3, token 4");
  EXPECT_EQ(place_in_log(log, "wrong"), "");
  EXPECT_EQ(place_in_log("", "wrong_logprob"), "");
}

TEST(Trial, MissingFilesAreLikeNothing) {
  EXPECT_EQ(content_of("no such file"), "");
  EXPECT_FALSE(same_results("no such file", ""));
}

TEST(FaultList, ReadsTheTableOfASchema) {
  const auto rows = read_faults(R"({"faults": [{"name": "a", "family": "f", "metric": "m", "verdicts": "DRIFT INVALID",
                                                "places": "p", "what": "w"}]})");
  ASSERT_TRUE(rows.ok()) << rows.status().message();
  ASSERT_EQ(rows->size(), 1U);
  EXPECT_EQ((*rows)[0].metric, "m");
  EXPECT_EQ((*rows)[0].verdicts, (std::vector<Verdict>{Verdict::kDrift, Verdict::kInvalid}));
}

TEST(FaultList, RefusesSchemasOfOtherEnginesAndVerdictsThatPass) {
  for (const char* schema : {"", "{}", "[]", R"({"faults": 1})", R"({"faults": [1]})", R"({"faults": [{}]})",
                             R"({"faults": [{"name": "a", "metric": "m", "verdicts": "EQUIVALENT"}]})",
                             R"({"faults": [{"name": "a", "metric": "m", "verdicts": "WRONG"}]})"}) {
    EXPECT_EQ(read_faults(schema).status().code(), StatusCode::kInvalid) << schema;
  }
}

TEST(FaultList, GlobsAreSeparatedByCommas) {
  EXPECT_TRUE(matches("", "stale_kv"));
  EXPECT_TRUE(matches("nan*,stale_?v", "stale_kv"));
  EXPECT_FALSE(matches("nan*,stale", "stale_kv"));
}

}  // namespace
}  // namespace assay::self_test
