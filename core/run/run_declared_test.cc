// Whole runs: provenance, waivers and repeats.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "assay/golden.h"
#include "core/golden/digest.h"
#include "core/run/read_run.h"
#include "core/run/run_fixture.h"

namespace assay::run {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::SizeIs;
using ::testing::StartsWith;

class Provenances : public Run {};
class WaivedRun : public Run {};

TEST_F(Provenances, ProvenanceOfTheResultsIsInOutcomeAndJournal) {
  add_golden(add_case("same", {"ok hallo"}), "ok hallo", "hallo");
  options_.assay_version = "1.2.3";
  run();
  const std::optional<Provenance>& made = outcome("same").provenance;
  ASSERT_TRUE(made.has_value());
  EXPECT_EQ(made->run_id, summary().run_id);
  EXPECT_EQ(made->assay_version, "1.2.3");
  EXPECT_EQ(made->engine, "misbehaving");
  EXPECT_EQ(made->engine_version, "1");
  EXPECT_EQ(made->engine_build, *digest_of_file((kBuild / "tests/plugins/engine_misbehaving.so").string()));
  EXPECT_EQ(made->platform, "here");
  EXPECT_EQ(made->schedule, "1 request, batch 1");
  EXPECT_THAT(made->recorded_at, MatchesRegex("20[0-9-]+T[0-9:]+Z"));
  EXPECT_THAT(made->backend + made->device + made->dtype + made->weights_sha256, IsEmpty());
  const Result<std::vector<std::string>> lines = read_event_lines(options_.output / "results.jsonl");
  std::string written;
  for (const std::string& line : *lines) {
    const Json event = *parse_line(line);
    if (event["event"] == event::kCaseFinished) written = event["provenance"].dump();
  }
  EXPECT_EQ(written, to_json(*made));
}

TEST_F(Provenances, FailureSaysWhatChangedSinceTheGoldenAndAPassDoesNot) {
  for (const char* name : {"same", "other"}) {
    const fs::path folder = add_case(name, {"ok hallo"});
    const std::string text = name == std::string("same") ? "hallo" : "holla";
    std::ofstream(folder / "golden_values_dev_here.json")
        << Json{{"assay", {{"provenance", {{"engine", "older"}, {"platform", "here"}, {"device", "unknown here"}}}}},
                {"0", {{"input_prompt", "ok hallo"}, {"generated_text", text}}}};
  }
  run();
  EXPECT_EQ(verdict("other"), "DIVERGED");
  EXPECT_THAT(reason("other"), EndsWith("; environment changed: engine"));
  EXPECT_THAT(outcome("other").verdict.environment, ElementsAre("engine: golden older, result misbehaving"));
  EXPECT_EQ(verdict("same"), "IDENTICAL");
  EXPECT_THAT(outcome("same").verdict.environment, IsEmpty());
}

TEST_F(Provenances, ReplayedResultsDoNotClaimTheReplayEngineAsTheirMaker) {
  add_golden(add_case("one", {"ok hallo"}), "ok hallo", "hallo");
  options_.engine = "replay";
  run();
  ASSERT_TRUE(outcome("one").provenance.has_value());
  EXPECT_THAT(outcome("one").provenance->engine, IsEmpty());
}

constexpr const char* kWaiver =
    "  engine: misbehaving\n  waivers:\n    - {reason: known, owner: kim, issue: '#1', expires: 2026-12-31, verdicts: "
    "[DIVERGED, CRASHED]}\n";

TEST_F(WaivedRun, WaiverCoversDifferencesAndCrashesAndTheJournalHasTheFinalVerdict) {
  options_.today = "2026-12-31";
  add_golden(add_case("differs", {"ok hallo"}, "", kWaiver), "ok hallo", "holla");
  add_case("dies", {"segv"}, "", kWaiver);
  add_golden(add_case("fails", {"fail x"}, "", kWaiver), "fail x", "x");
  run();
  EXPECT_EQ(verdict("differs"), "WAIVED");
  EXPECT_EQ(verdict("dies"), "WAIVED");
  EXPECT_EQ(outcome("dies").verdict.judged, Verdict::kCrashed);
  EXPECT_EQ(verdict("fails"), "INVALID");
  EXPECT_THAT(outcome("fails").verdict.declared, HasSubstr("covers DIVERGED, CRASHED only"));
  const Result<std::vector<std::string>> lines = read_event_lines(options_.output / "results.jsonl");
  size_t finished = 0;
  for (const std::string& line : *lines) {
    const Json event = *parse_line(line);
    if (event["event"] != event::kCaseFinished) continue;
    ++finished;
    EXPECT_EQ(event["verdict"]["verdict"], verdict(event["name"].get<std::string>()));
  }
  EXPECT_EQ(finished, 3u);
}

TEST_F(WaivedRun, ExpiredWaiverFailsAndABrokenConfigIsNeverWaived) {
  options_.today = "2027-01-01";
  add_golden(add_case("differs", {"ok hallo"}, "", kWaiver), "ok hallo", "holla");
  add_case("broken", {"ok a"}, "  --num-layer: 4\n",
           "  engine: misbehaving\n  waivers:\n    - {reason: a, owner: b, issue: c, expires: 2030-01-01, verdicts: "
           "INVALID}\n");
  add_case("bad_waiver", {"ok a"}, "", "  engine: misbehaving\n  waivers:\n    - {reason: a}\n");
  run();
  EXPECT_EQ(verdict("differs"), "DIVERGED");
  EXPECT_THAT(outcome("differs").verdict.declared, HasSubstr("expired on 2026-12-31"));
  EXPECT_EQ(verdict("broken"), "INVALID");
  EXPECT_EQ(verdict("bad_waiver"), "INVALID");
  EXPECT_THAT(reason("bad_waiver"), HasSubstr("ASSAY.waivers[0]: owner is missing"));
}

TEST_F(WaivedRun, XpassOfTestEvaluationAllowsTheEngineToFailAlone) {
  const std::string xpass = "TEST_EVALUATION: xpass\n";
  add_case("dies", {"segv"}, xpass);
  add_case("fails", {"fail x"}, xpass);
  add_golden(add_case("passes", {"ok hallo"}, xpass), "ok hallo", "hallo");
  add_golden(add_case("differs", {"ok hallo"}, xpass), "ok hallo", "holla");
  run();
  EXPECT_EQ(verdict("dies"), "XFAIL");
  EXPECT_EQ(verdict("fails"), "XFAIL");
  EXPECT_EQ(verdict("passes"), "IDENTICAL");
  EXPECT_EQ(verdict("differs"), "DIVERGED");
}

TEST_F(WaivedRun, XpassOfTestEvaluationDoesNotAllowWhatKeepsTheEngineFromRunning) {
  const std::string xpass = "TEST_EVALUATION: xpass\n";
  add_golden(add_case("case", {"segv"}, xpass), "segv", "x");
  add_golden(add_case("exact", {"ok x"}, "  --deterministic-mode: true\n" + xpass), "ok x", "x");
  run();
  EXPECT_EQ(verdict("case"), "XFAIL");
  EXPECT_EQ(verdict("exact"), "INVALID") << reason("exact");
  options_.engine_options = R"({"refuse_to_open": true})";
  run();
  EXPECT_EQ(verdict("case"), "INVALID") << "an option that is refused is no failure of the engine";
  EXPECT_THAT(reason("case"), HasSubstr("told to refuse"));
}

// A case whose text is another one each time: the words of `turns`, the last one stays.
class RepeatedRun : public Run {
 protected:
  fs::path add_turns(const std::string& name, const std::string& turns, const std::string& assay = "") {
    const std::string prompt = "turns " + (dir_ / (name + ".count")).string() + " " + turns;
    const fs::path folder = add_case(name, {prompt}, "", "  engine: misbehaving\n" + assay);
    add_golden(folder, prompt, "a");
    return folder;
  }
  std::vector<Verdict> verdicts_of_repeats(const std::string& name) const {
    std::vector<Verdict> verdicts;
    for (const Repeat& repeat : outcome(name).repeats) verdicts.push_back(repeat.verdict);
    return verdicts;
  }
};

TEST_F(RepeatedRun, EqualRepeatsKeepTheVerdictAndHaveFoldersOfTheirOwn) {
  add_turns("same", "a");
  options_.repeat = 3;
  run();
  EXPECT_EQ(verdict("same"), "IDENTICAL");
  EXPECT_THAT(reason("same"), EndsWith("; 3 repeats, bit-equal"));
  ASSERT_THAT(outcome("same").repeats, SizeIs(3));
  for (const Repeat& repeat : outcome("same").repeats) {
    EXPECT_TRUE(repeat.identical_to_first);
    EXPECT_EQ(*read_results(repeat.actual)->requests[0].text, "a");
    EXPECT_GT(repeat.seconds, 0);
  }
  EXPECT_THAT(outcome("same").actual, EndsWith("cases/same/actual.json"));
  EXPECT_THAT(outcome("same").repeats[2].actual, EndsWith("cases/same/repeat_3/actual.json"));
  EXPECT_EQ(events(event::kLoadFinished), 1u);
  EXPECT_EQ(events(event::kRepeatFinished), 3u);
  EXPECT_EQ(events(event::kCaseFinished), 1u);
  options_.repeat = 2;
  run();
  EXPECT_FALSE(fs::exists(options_.output / "cases/same/repeat_3"));
}

TEST_F(RepeatedRun, CaseThatPassesOnlySometimesIsFlaky) {
  add_turns("sometimes", "a b a c a");
  options_.repeat = 5;
  run();
  EXPECT_EQ(verdict("sometimes"), "FLAKY");
  EXPECT_THAT(reason("sometimes"), StartsWith("passed 3 of 5 repeats; repeat 2 DIVERGED: "));
  EXPECT_THAT(verdicts_of_repeats("sometimes"),
              ElementsAre(Verdict::kIdentical, Verdict::kDiverged, Verdict::kIdentical, Verdict::kDiverged,
                          Verdict::kIdentical));
  EXPECT_FALSE(outcome("sometimes").repeats[1].identical_to_first);
  EXPECT_THAT(outcome("sometimes").repeats[1].difference, HasSubstr("request 0: token[0]: 97 and 98"));
  EXPECT_TRUE(outcome("sometimes").repeats[2].identical_to_first);
  EXPECT_EQ(exit_code(summary().verdicts()), 1);
}

TEST_F(RepeatedRun, CrashOfSomeRepeatsIsFlakyAndTheOthersStillRun) {
  add_turns("dies", "a segv a a");
  add_turns("at_first", "segv a a a");
  add_turns("always", "segv segv segv segv");
  options_.repeat = 4;
  run();
  EXPECT_EQ(verdict("dies"), "FLAKY");
  EXPECT_THAT(reason("dies"), AllOf(StartsWith("passed 3 of 4 repeats; repeat 2 CRASHED: "), HasSubstr("SIGSEGV")));
  EXPECT_THAT(verdicts_of_repeats("dies"),
              ElementsAre(Verdict::kIdentical, Verdict::kCrashed, Verdict::kIdentical, Verdict::kIdentical));
  EXPECT_TRUE(outcome("dies").repeats[3].identical_to_first);
  EXPECT_THAT(outcome("dies").log, EndsWith("cases/dies/repeat_2/engine.log"));
  EXPECT_EQ(verdict("at_first"), "FLAKY");
  EXPECT_THAT(outcome("at_first").actual, EndsWith("repeat_2/actual.json"));
  EXPECT_TRUE(outcome("at_first").repeats[3].identical_to_first);
  EXPECT_EQ(verdict("always"), "CRASHED");
  EXPECT_THAT(reason("always"), HasSubstr("2 of 4 repeats did not run"));
}

TEST_F(RepeatedRun, RepeatWithoutAllResultsIsNoMeasureForTheOthers) {
  add_turns("partly", "fail a a");
  options_.repeat = 3;
  run();
  EXPECT_EQ(verdict("partly"), "FLAKY");
  EXPECT_THAT(verdicts_of_repeats("partly"), ElementsAre(Verdict::kInvalid, Verdict::kIdentical, Verdict::kIdentical));
  EXPECT_FALSE(outcome("partly").repeats[0].identical_to_first);
  EXPECT_THAT(outcome("partly").repeats[1].difference, IsEmpty());
  EXPECT_TRUE(outcome("partly").repeats[2].identical_to_first);
}

TEST_F(RepeatedRun, PassesThatAreNotBitEqualAreEquivalentAtBest) {
  add_turns("unsteady", "a a! a");
  options_.repeat = 3;
  run();
  EXPECT_EQ(verdict("unsteady"), "EQUIVALENT");
  EXPECT_THAT(reason("unsteady"), HasSubstr("not bit-equal: repeat 2 differs from repeat 1 in request 0: token"));
}

TEST_F(RepeatedRun, FailuresInEveryRepeatKeepTheWorstVerdict) {
  add_turns("wrong", "b");
  options_.repeat = 2;
  run();
  EXPECT_EQ(verdict("wrong"), "DIVERGED");
  EXPECT_THAT(reason("wrong"), EndsWith("; none of 2 repeats passes (2 DIVERGED), bit-equal"));
}

TEST_F(RepeatedRun, WaiverOfFlakyCoversIt) {
  add_turns("waived", "a b a",
            "  waivers:\n    - {reason: r, owner: o, issue: i, expires: 2030-01-01, verdicts: FLAKY, metrics: "
            "generated_text}\n");
  options_.repeat = 3;
  options_.today = "2026-11-29";
  run();
  EXPECT_EQ(verdict("waived"), "WAIVED");
  EXPECT_EQ(outcome("waived").verdict.judged, Verdict::kFlaky);
}

TEST_F(RepeatedRun, JournalHoldsTheRepeatsInTheFinalEvent) {
  add_turns("one", "a b");
  options_.repeat = 2;
  run();
  const Result<std::vector<std::string>> lines = read_event_lines(options_.output / "results.jsonl");
  for (const std::string& line : *lines) {
    const Json event = *parse_line(line);
    if (event["event"] != event::kCaseFinished) continue;
    EXPECT_EQ(event["verdict"]["verdict"], "FLAKY");
    ASSERT_EQ(event["repeats"].size(), 2u);
    const Result<Repeat> repeat = parse_repeat(event["repeats"][1]);
    ASSERT_TRUE(repeat.ok()) << repeat.status().message();
    EXPECT_EQ(repeat->verdict, Verdict::kDiverged);
    EXPECT_EQ(repeat->actual, outcome("one").repeats[1].actual);
    EXPECT_EQ(repeat->difference, outcome("one").repeats[1].difference);
  }
}

TEST_F(RepeatedRun, RepeatsAreReadBackFromAFolderThatWasMoved) {
  add_turns("one", "a segv b");
  options_.repeat = 3;
  run();
  fs::rename(options_.output, dir_ / "moved");
  const Result<RunRecord> record = read_run(dir_ / "moved");
  ASSERT_TRUE(record.ok()) << record.status().message();
  ASSERT_THAT(record->summary.outcomes, SizeIs(1));
  const CaseOutcome& one = record->summary.outcomes[0];
  EXPECT_EQ(one.verdict.verdict, Verdict::kFlaky);
  EXPECT_EQ(one.log, (dir_ / "moved/cases/one/repeat_2/engine.log").string());
  ASSERT_THAT(one.repeats, SizeIs(3));
  EXPECT_EQ(one.repeats[1].verdict, Verdict::kCrashed);
  EXPECT_THAT(one.repeats[1].actual, IsEmpty());
  EXPECT_EQ(one.repeats[2].actual, (dir_ / "moved/cases/one/repeat_3/actual.json").string());
  EXPECT_THAT(one.repeats[2].difference, HasSubstr("token[0]"));
}

TEST_F(RepeatedRun, NRepeatOfEnvVarsCountsUnlessTheRunSaysOtherwise) {
  add_golden(add_case("thrice", {"ok a"}, "ENV_VARS:\n  N_REPEAT: 3\n"), "ok a", "a");
  add_golden(add_case("once", {"ok a"}), "ok a", "a");
  add_case("bad", {"ok a"}, "ENV_VARS:\n  N_REPEAT: often\n");
  run();
  EXPECT_THAT(outcome("thrice").repeats, SizeIs(3));
  EXPECT_THAT(outcome("once").repeats, IsEmpty());
  EXPECT_EQ(verdict("bad"), "INVALID");
  EXPECT_THAT(reason("bad"), HasSubstr("N_REPEAT 'often': expected a whole number from 1 to 1000"));
  options_.repeat = 1;
  run();
  EXPECT_THAT(outcome("thrice").repeats, IsEmpty());
}

TEST_F(RepeatedRun, QuantitiesAreMeasuredWhereMetricsListsThemOrTheRunAsks) {
  add_case("listed", {"ok abc"}, "  --inference-repeat-n: 3\nMETRICS: [generated_text, throughput]\n");
  add_case("other", {"ok abc"}, "  --inference-repeat-n: 3\n");
  run();
  const Result<ResultSet> listed = read_results(outcome("listed").actual);
  ASSERT_TRUE(listed.ok()) << listed.status().message();
  ASSERT_THAT(listed->quantities, SizeIs(1));
  EXPECT_EQ(listed->quantities[0].name, "throughput");
  EXPECT_THAT(listed->quantities[0].values, SizeIs(3));
  EXPECT_GT(listed->quantities[0].values[2], 0);
  EXPECT_THAT(read_results(outcome("other").actual)->quantities, IsEmpty());
  options_.record_quantities = true;
  run();
  EXPECT_THAT(read_results(outcome("other").actual)->quantities, SizeIs(3));
}

TEST_F(RepeatedRun, ReplayPassesOnTheQuantitiesThatWereRecorded) {
  const fs::path folder = add_case("one", {"ok a"}, "METRICS: [generated_text, throughput]\n");
  std::ofstream(folder / "recorded.json")
      << R"({"0": {"input_prompt": "ok a", "generated_text": "a"}, "throughput": [1, 2]})";
  options_.engine = "replay";
  run();
  const Result<ResultSet> results = read_results(outcome("one").actual);
  ASSERT_TRUE(results.ok()) << reason("one");
  ASSERT_THAT(results->quantities, SizeIs(1));
  EXPECT_THAT(results->quantities[0].values, ElementsAre(1, 2));
}

}  // namespace
}  // namespace assay::run
