#include "core/run/read_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <tuple>

#include "core/run/events.h"
#include "core/run/journal.h"

namespace assay::run {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ReadRun : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) /
              fmt("assay_read_run_", ::testing::UnitTest::GetInstance()->current_test_info()->name(), ::getpid());
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  static std::string fmt(const std::string& head, const std::string& name, int number) {
    return head + name + "_" + std::to_string(number);
  }
  static Json event(std::string_view name, double t, const Json& members = Json::object()) {
    Json json = {{"event", name}, {"t", t}};
    json.update(members);
    return json;
  }
  void add(const Json& json) { text_ += json.dump() + "\n"; }
  void begin() {
    add(event("run_started", 100,
              {{"schema", kEventSchema},
               {"run_id", "r1"},
               {"command", {"assay", "run", "x"}},
               {"cases", 3},
               {"environment", "dev"},
               {"options", {{"jobs", 2}, {"strict", true}}}}));
    for (const char* name : {"a", "b", "c"}) {
      add(event("case_planned", 100,
                {{"case", name}, {"name", std::string("m/") + name}, {"path", "/t"}, {"reproduce", "assay run /t"}}));
    }
  }
  void verdict(const char* name, const char* verdict) {
    add(event("case_finished", 104,
              {{"case", name},
               {"name", std::string("m/") + name},
               {"verdict", {{"verdict", verdict}, {"reason", "why"}, {"golden", "g"}, {"metrics", Json::array()}}},
               {"summary", {{"engine", "e"}, {"seconds", 2.5}}},
               {"actual", ""},
               {"log", ""}}));
  }
  Result<RunRecord> read(Detail detail = Detail::kFull) {
    std::ofstream(folder_ / "results.jsonl") << text_;
    return read_run(folder_, detail);
  }

  fs::path folder_;
  std::string text_;
};

TEST_F(ReadRun, AFinishedRunComesBackInPlannedOrder) {
  begin();
  for (const char* name : {"c", "a", "b"}) verdict(name, "IDENTICAL");
  add(event("run_finished", 105, {{"seconds", 4.5}, {"cancelled", false}}));
  const Result<RunRecord> record = read();
  ASSERT_TRUE(record.ok()) << record.status().message();
  EXPECT_TRUE(record->finished);
  EXPECT_TRUE(record->strict);
  EXPECT_EQ(record->info.run_id, "r1");
  EXPECT_THAT(record->command, ElementsAre("assay", "run", "x"));
  EXPECT_EQ(record->summary.seconds, 4.5);
  ASSERT_EQ(record->summary.outcomes.size(), 3u);
  EXPECT_EQ(record->summary.outcomes[2].name, "m/c");
  EXPECT_EQ(record->summary.outcomes[2].reproduce, "assay run /t");
  EXPECT_EQ(record->summary.outcomes[2].summary.seconds, 2.5);
}

TEST_F(ReadRun, AKilledRunSaysWhichCaseDidNotFinishAndWhichNeverStarted) {
  begin();
  verdict("a", "IDENTICAL");
  add(event("case_started", 103, {{"case", "b"}, {"name", "m/b"}}));
  add(event("request_finished", 107, {{"case", "b"}, {"request", "4"}}));
  text_ += R"({"event":"case_finished","case":"b","verdi)";  // torn
  const Result<RunRecord> record = read();
  ASSERT_TRUE(record.ok()) << record.status().message();
  EXPECT_FALSE(record->finished);
  EXPECT_EQ(record->unfinished, 1u);
  EXPECT_EQ(record->never_started, 1u);
  EXPECT_EQ(record->summary.seconds, 7);
  EXPECT_EQ(record->summary.outcomes[1].verdict.verdict, Verdict::kCrashed);
  EXPECT_THAT(record->summary.outcomes[1].verdict.reason, AllOf(HasSubstr("did not finish"), HasSubstr("is 4")));
  EXPECT_EQ(record->summary.outcomes[2].verdict.verdict, Verdict::kInfra);
  EXPECT_THAT(record->summary.outcomes[2].verdict.reason, HasSubstr("never started"));
}

TEST_F(ReadRun, ARunThatGoesOnHasItsFinishedCasesAndCountsTheOthers) {
  const Result<Journal> journal = Journal::open(folder_);  // holds the lock
  ASSERT_TRUE(journal.ok());
  begin();
  verdict("a", "IDENTICAL");
  add(event("case_started", 103, {{"case", "b"}, {"name", "m/b"}}));
  const Result<RunRecord> record = read();
  ASSERT_TRUE(record.ok()) << record.status().message();
  EXPECT_TRUE(record->running);
  EXPECT_EQ(record->summary.outcomes.size(), 1u);
  EXPECT_EQ(record->unfinished, 1u);
  EXPECT_EQ(record->never_started, 1u);
}

TEST_F(ReadRun, TheFirstVerdictOfACaseStands) {
  begin();
  verdict("a", "DIVERGED");
  verdict("a", "IDENTICAL");
  EXPECT_EQ(read()->summary.outcomes[0].verdict.verdict, Verdict::kDiverged);
}

TEST_F(ReadRun, RepeatsComeBack) {
  begin();
  Json line =
      event("case_finished", 104, {{"case", "a"}, {"verdict", to_json(CaseVerdict{Verdict::kFlaky, "r", "g", {}})}});
  line["repeats"] =
      Json::array({to_json(Repeat{.verdict = Verdict::kIdentical, .identical_to_first = true}),
                   to_json(Repeat{.verdict = Verdict::kDiverged, .reason = "r", .difference = "token 3"})});
  add(line);
  const Result<RunRecord> record = read();
  ASSERT_TRUE(record.ok()) << record.status().message();
  ASSERT_EQ(record->summary.outcomes[0].repeats.size(), 2u);
  EXPECT_EQ(record->summary.outcomes[0].repeats[1].difference, "token 3");
  EXPECT_EQ(record->summary.outcomes[0].repeats[1].verdict, Verdict::kDiverged);
}

TEST_F(ReadRun, VerdictsAloneLeaveOutTheFindings) {
  begin();
  Json line = event("case_finished", 104, {{"case", "a"}});
  CaseVerdict diverged{.verdict = Verdict::kDiverged, .reason = "r", .golden = "g", .metrics = {}};
  diverged.metrics.push_back({"generated_tokens", Verdict::kDiverged, {Finding{}}});
  line["verdict"] = to_json(diverged);
  add(line);
  EXPECT_EQ(read()->summary.outcomes[0].verdict.metrics.size(), 1u);
  const Result<RunRecord> bare = read(Detail::kVerdicts);
  ASSERT_TRUE(bare.ok()) << bare.status().message();
  EXPECT_EQ(bare->summary.outcomes[0].verdict.verdict, Verdict::kDiverged);
  EXPECT_TRUE(bare->summary.outcomes[0].verdict.metrics.empty());
}

TEST_F(ReadRun, AMovedFolderFindsItsFilesAgain) {
  begin();
  add(event("case_finished", 104,
            {{"case", "a"},
             {"verdict", Json::parse(R"({"verdict":"CRASHED","reason":"","golden":"","metrics":[]})")},
             {"log", "/nowhere/out/cases/a/engine.log"}}));
  fs::create_directories(folder_ / "cases/a");
  std::ofstream(folder_ / "cases/a/engine.log") << "boom\n";
  EXPECT_EQ(read()->summary.outcomes[0].log, (folder_ / "cases/a/engine.log").string());
}

TEST_F(ReadRun, ABrokenJournalIsOneLineThatNamesThePlace) {
  const auto message = [this](const std::string& text) {
    text_ = text;
    const Result<RunRecord> record = read();
    return record ? std::string("read") : record.status().message();
  };
  EXPECT_THAT(message(""), HasSubstr("no run_started line"));
  EXPECT_THAT(message("hallo\n"), AllOf(HasSubstr("results.jsonl:1"), HasSubstr("not a JSON object")));
  EXPECT_THAT(message("{\"event\":\"case_started\"}\n"), HasSubstr("before run_started"));
  EXPECT_THAT(message("{\"event\":\"run_started\",\"schema\":99}\n"), HasSubstr("schema 99"));
  EXPECT_THAT(message("{\"event\":\"run_started\",\"schema\":1,\"command\":7}\n"), HasSubstr("results.jsonl:1"));
  EXPECT_THAT(message("{\"event\":\"run_started\",\"schema\":8.9e23}\n"), HasSubstr("results.jsonl:1"));
  const std::string start = "{\"event\":\"run_started\",\"schema\":1}\n";
  EXPECT_THAT(message(start + "{\"event\":\"case_finished\",\"case\":\"a\",\"verdict\":{\"verdict\":\"FINE\"}}\n"),
              AllOf(HasSubstr("results.jsonl:2"), HasSubstr("FINE")));
  EXPECT_THAT(message(start + "{\"event\":\"case_finished\",\"case\":\"a\",\"verdict\":7}\n"), HasSubstr(":2"));
  EXPECT_THAT(message(start + "{\"event\":\"case_started\",\"case\":[7]}\n"),
              HasSubstr(":2: case_started: type must be"));
  for (const char* line :
       {"{\"event\":\"case_finished\",\"case\":\"a\",\"verdict\":{\"verdict\":\"DRIFT\"}}\n",
        "{\"event\":\"case_started\",\"case\":{}}\n", "{\"event\":\"run_started\",\"schema\":\"1\"}\n"}) {
    EXPECT_EQ(message(start + line).find("json.exception"), std::string::npos) << message(start + line);
  }
}

TEST_F(ReadRun, AShardThatIsNoneOfItsDivisionIsRefused) {
  for (const auto& [index, count, good] : std::vector<std::tuple<int, int, bool>>{
           {1, 3, true}, {3, 3, true}, {0, 3, false}, {4, 3, false}, {77, 3, false}, {1, 0, false}}) {
    text_.clear();
    add(event("run_started", 100,
              {{"schema", kEventSchema}, {"run_id", "r1"}, {"shard", {{"index", index}, {"count", count}}}}));
    std::ofstream(folder_ / "results.jsonl") << text_;
    const Result<RunRecord> read = read_run(folder_);
    EXPECT_EQ(read.ok(), good) << index << " of " << count;
    if (good) continue;
    EXPECT_THAT(read.status().message(), HasSubstr("results.jsonl:1: run_started: shard"));
  }
}

TEST_F(ReadRun, AnIdThatLeavesTheFolderIsRefused) {
  for (const char* id : {"..", "../x", "a/../../x", "/x", "./x"}) {
    text_.clear();
    begin();
    add(event("case_planned", 100, {{"case", id}, {"name", id}}));
    std::ofstream(folder_ / "results.jsonl") << text_;
    const Result<RunRecord> read = read_run(folder_);
    ASSERT_FALSE(read.ok()) << id;
    EXPECT_EQ(read.status().code(), StatusCode::kInvalid);
    EXPECT_THAT(read.status().message(), HasSubstr("results.jsonl:5: case_planned: case"));
  }
}

TEST_F(ReadRun, FilesOfAnotherRunThatIsWhereThisOneWasAreNotItsOwn) {
  const fs::path then = folder_ / "then";  // where the run was made; another one is there now
  begin();
  for (const char* name : {"a", "b"}) {
    add(event("case_finished", 104,
              {{"case", name},
               {"name", std::string("m/") + name},
               {"verdict", {{"verdict", "IDENTICAL"}, {"reason", ""}, {"golden", ""}, {"metrics", Json::array()}}},
               {"actual", (then / "cases" / name / "actual.json").string()}}));
    fs::create_directories(then / "cases" / name);
    std::ofstream(then / "cases" / name / "actual.json") << "{}";
  }
  fs::create_directories(folder_ / "cases/a");
  std::ofstream(folder_ / "cases/a/actual.json") << "{}";
  const Result<RunRecord> record = read();
  ASSERT_TRUE(record.ok()) << record.status().message();
  EXPECT_EQ(record->summary.outcomes[0].actual, folder_ / "cases/a/actual.json");
  EXPECT_EQ(record->summary.outcomes[1].actual, "");
}

TEST_F(ReadRun, RowsThatWereCountedAndNotWrittenDownAreMissed) {
  begin();
  EXPECT_EQ(read()->unplanned, 0u);
  text_.erase(text_.find('\n') + 1);  // cut off behind run_started
  EXPECT_EQ(read()->unplanned, 3u);
  add(event("run_finished", 105, {{"seconds", 4.5}}));
  EXPECT_EQ(read()->unplanned, 0u);
}

TEST_F(ReadRun, AFolderWithoutAJournalIsNotFound) {
  EXPECT_EQ(read_run(folder_).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(read_run(folder_ / "none").status().code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace assay::run
