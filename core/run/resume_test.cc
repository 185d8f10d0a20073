// Runs that end before their end, and what becomes of them.
#include "core/run/resume.h"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>

#include "core/run/case_digest.h"
#include "core/run/read_run.h"
#include "core/run/run_fixture.h"
#include "tests/temporary_folder.h"

namespace assay::run {
namespace {

using testing::HasSubstr;
using testing::UnorderedElementsAre;

// Asks the run to stop after some cases.
class Stopper : public Silent {
 public:
  explicit Stopper(size_t after) : after_(after) {}
  void case_finished(const CaseOutcome& outcome) override {
    Silent::case_finished(outcome);
    stop = order.size() >= after_;
  }
  std::atomic<bool> stop{false};

 private:
  size_t after_;
};

class Resume : public Run {
 protected:
  // Six cases: IDENTICAL, DIVERGED, CRASHED, INVALID.
  void add_cases() {
    for (const char* name : {"a", "b", "c"}) add_golden(add_case(name, {"ok echo"}), "ok echo", "echo");
    add_golden(add_case("d", {"ok echo"}), "ok echo", "another text");
    add_golden(add_case("e", {"segv"}), "segv", "segv");
    add_case("f", {"ok echo"}, "", "  engine: nobody\n");
  }
  std::string journal() const { return *read_file(options_.output / "results.jsonl"); }
  void set_journal(const std::string& text) const {
    std::ofstream(options_.output / "results.jsonl", std::ios::binary) << text;
  }
  std::map<std::string, std::string> verdicts() const {
    std::map<std::string, std::string> map;
    for (const CaseOutcome& one : summary().outcomes) map[one.name] = to_string(one.verdict.verdict);
    return map;
  }
  void resume() {
    options_.resume = true;
    run();
  }
};

TEST_F(Resume, AJournalCutAnywhereIsBroughtToTheSameVerdicts) {
  add_cases();
  run();
  const auto expected = verdicts();
  const std::string whole = journal();
  std::vector<size_t> cuts;
  for (size_t end = whole.find('\n'); end != std::string::npos; end = whole.find('\n', end + 1)) {
    cuts.push_back(end + 1);
    if (cuts.size() % 3 == 0 && end + 20 < whole.size()) cuts.push_back(end + 20);  // within the next line
  }
  ASSERT_GT(cuts.size(), 20U);
  for (size_t i = 0; i < cuts.size(); i += 2) {
    set_journal(whole.substr(0, cuts[i]));
    resume();
    ASSERT_TRUE(result_->ok()) << result_->status().message();
    EXPECT_EQ(verdicts(), expected) << "cut at byte " << cuts[i];
    const Result<RunRecord> read = read_run(options_.output);
    ASSERT_TRUE(read.ok()) << read.status().message();
    EXPECT_TRUE(read->finished);
    EXPECT_EQ(read->unfinished + read->never_started, 0U);
    EXPECT_EQ(read->summary.outcomes.size(), expected.size());
  }
}

TEST_F(Resume, FinishedCasesKeepTheirResultsAndAreNotRunAgain) {
  add_cases();
  run();
  const std::string whole = journal();
  const std::string end = R"("event":"run_finished")";
  set_journal(whole.substr(0, whole.rfind('\n', whole.rfind(end)) + 1));
  resume();
  ASSERT_TRUE(result_->ok()) << result_->status().message();
  EXPECT_TRUE(observer_.order.empty());
  EXPECT_EQ(observer_.started.kept, 6U);
  EXPECT_FALSE(outcome("a").actual.empty());
  EXPECT_TRUE(fs::exists(outcome("a").actual));
}

TEST_F(Resume, ACancelledRunGoesOnTwice) {
  add_cases();
  Result<std::vector<TestCase>> cases = discover::discover({(dir_ / "cases").string()});
  for (const size_t after : {1U, 1U, 100U}) {
    options_.cases = *cases;
    Stopper stopper(after);
    options_.cancel = &stopper.stop;
    result_ = run::run(options_, stopper);
    ASSERT_TRUE(result_->ok()) << result_->status().message();
    options_.resume = true;
  }
  EXPECT_THAT(verdicts(), UnorderedElementsAre(std::pair("a", "IDENTICAL"), std::pair("b", "IDENTICAL"),
                                               std::pair("c", "IDENTICAL"), std::pair("d", "DIVERGED"),
                                               std::pair("e", "CRASHED"), std::pair("f", "INVALID")));
  EXPECT_EQ(read_run(options_.output)->sessions, 3U);
}

TEST_F(Resume, VerdictsThatAreAskedForAreRunAgain) {
  add_cases();
  run();
  add_golden(dir_ / "cases/d", "ok echo", "echo");
  options_.rerun = {Verdict::kCrashed};
  resume();
  ASSERT_TRUE(result_->ok()) << result_->status().message();
  EXPECT_THAT(observer_.order, UnorderedElementsAre("d", "e")) << "d, because its golden has changed";
  EXPECT_EQ(verdict("d"), "IDENTICAL");
  EXPECT_THAT(observer_.started.resumed, HasSubstr("config, golden or prompts changed: d"));
}

TEST_F(Resume, OtherOptionsAreRefusedWithAllThatDiffers) {
  add_cases();
  run();
  const std::string before = journal();
  options_.repeat = 3;
  options_.environment_name = "lts";
  options_.jobs = 4;
  fs::remove_all(dir_ / "cases/b");
  resume();
  ASSERT_FALSE(result_->ok());
  const std::string message = result_->status().message();
  for (const char* part : {"repeat: recorded 0, now 3", "environment: recorded 'dev', now 'lts'", "case b: recorded"}) {
    EXPECT_THAT(message, HasSubstr(part));
  }
  EXPECT_THAT(message, Not(HasSubstr("jobs")));
  EXPECT_EQ(journal(), before);
}

TEST_F(Resume, RepeatsThatWereOverCount) {
  add_golden(add_case("a", {"ok echo"}), "ok echo", "echo");
  options_.repeat = 4;
  run();
  const std::string whole = journal();
  size_t cut = 0;
  for (int i = 0; i < 2; ++i) cut = whole.find(R"("event":"repeat_finished")", cut + 1);
  set_journal(whole.substr(0, whole.find('\n', cut) + 1));
  resume();
  ASSERT_TRUE(result_->ok()) << result_->status().message();
  EXPECT_EQ(verdict("a"), "IDENTICAL");
  EXPECT_EQ(outcome("a").repeats.size(), 4U);
  const std::string rest = journal().substr(journal().find("run_resumed"));
  size_t repeats = 0;
  for (size_t at = 0; (at = rest.find(R"("event":"repeat_finished")", at)) != std::string::npos; ++at) ++repeats;
  EXPECT_EQ(repeats, 2U);
}

TEST_F(Resume, ARepeatWhoseLineIsOfAnotherFormIsNamedWithIt) {
  add_golden(add_case("a", {"ok echo"}), "ok echo", "echo");
  options_.repeat = 2;
  run();
  const std::string whole = journal();
  const size_t begin = whole.rfind('\n', whole.find(R"("event":"repeat_finished")")) + 1;
  const Json sound = Json::parse(whole.substr(begin, whole.find('\n', begin) - begin));
  for (const auto& [member, value] : std::vector<std::pair<const char*, Json>>{{"verdict", "x"},
                                                                               {"verdict", 7},
                                                                               {"verdict", nullptr},
                                                                               {"verdict", {{"verdict", "x"}}},
                                                                               {"actual", 7},
                                                                               {"log", Json::array()},
                                                                               {"difference", 1.5},
                                                                               {"engine_failed", "no"}}) {
    Json line = sound;
    line[member] = value;
    set_journal(whole.substr(0, begin) + line.dump() + "\n");
    resume();
    ASSERT_FALSE(result_->ok()) << line;
    EXPECT_EQ(result_->status().code(), StatusCode::kInvalid) << line;
    EXPECT_THAT(result_->status().message(), HasSubstr("results.jsonl:"));
    EXPECT_THAT(result_->status().message(), HasSubstr("repeat_finished"));
  }
}

TEST_F(Resume, ARunThatIsStillGoingOnIsRefused) {
  add_cases();
  run();
  const Result<FolderLock> lock = FolderLock::take(options_.output);
  ASSERT_TRUE(lock.ok());
  resume();
  ASSERT_FALSE(result_->ok());
  EXPECT_THAT(result_->status().message(), HasSubstr("in use by process"));
}

TEST_F(Resume, FoldersThatHoldNoRunAreNamed) {
  options_.resume = true;
  run();
  EXPECT_EQ(result_->status().code(), StatusCode::kNotFound);
  fs::create_directories(options_.output);
  run();
  EXPECT_THAT(result_->status().message(), HasSubstr("no results.jsonl"));
  set_journal("{\"event\":\"run_started\",\"schema\":99}\n");
  run();
  EXPECT_THAT(result_->status().message(), HasSubstr("schema 99"));
  set_journal("nonsense\n");
  run();
  EXPECT_THAT(result_->status().message(), HasSubstr("results.jsonl:1"));
}

class Lock : public ::testing::Test {
 protected:
  void write(const std::string& text) { std::ofstream(folder_ / ".lock") << text; }
  const tests::TemporaryFolder own_folder_;
  const fs::path folder_ = own_folder_.path();
};

TEST_F(Lock, IsHeldByOneAndFreeAfterwards) {
  {
    const Result<FolderLock> first = FolderLock::take(folder_);
    ASSERT_TRUE(first.ok());
    EXPECT_FALSE(FolderLock::take(folder_).ok());
    EXPECT_THAT(lock_holder(folder_), HasSubstr(std::to_string(::getpid())));
  }
  EXPECT_EQ(lock_holder(folder_), "");
  EXPECT_TRUE(FolderLock::take(folder_).ok());
}

TEST_F(Lock, OfAnotherMachineCountsWhileItsTimeStampIsFresh) {
  write("4711 a-host-that-is-not-this-one\n");
  const Result<FolderLock> fresh = FolderLock::take(folder_);
  ASSERT_FALSE(fresh.ok());
  EXPECT_THAT(fresh.status().message(), HasSubstr("process 4711 on host a-host-that-is-not-this-one"));
  EXPECT_THAT(lock_holder(folder_), HasSubstr("4711"));
  fs::last_write_time(folder_ / ".lock", fs::file_time_type::clock::now() - std::chrono::seconds(kStaleSeconds + 5));
  EXPECT_EQ(lock_holder(folder_), "");
  EXPECT_TRUE(FolderLock::take(folder_).ok());
}

TEST_F(Lock, OfADeadProcessOfThisMachineIsTakenOver) {
  std::array<char, 256> host{};
  ASSERT_EQ(::gethostname(host.data(), host.size() - 1), 0);
  const pid_t dead = ::fork();
  if (dead == 0) ::_exit(0);
  ASSERT_EQ(::waitpid(dead, nullptr, 0), dead);
  write(std::to_string(dead) + " " + host.data() + "\n");
  EXPECT_TRUE(FolderLock::take(folder_).ok());
}

// A disk that is full is no fault of the engine, and no failure that a case may be declared to have.
TEST_F(Resume, AWorkerThatCannotWriteItsEventsIsInfra) {
  add_golden(add_case("a", {"full a", "ok echo"}, "TEST_EVALUATION: xpass\n"), "full a", "a");
  add_golden(add_case("b", {"ok echo"}), "ok echo", "echo");
  run();
  ASSERT_TRUE(result_->ok()) << result_->status().message();
  EXPECT_EQ(verdict("a"), "INFRA") << reason("a");
  EXPECT_THAT(reason("a"), HasSubstr("could not write its events"));
  EXPECT_EQ(verdict("b"), "IDENTICAL") << "by the next worker";
}

TEST_F(Resume, AFolderWhoseNameIsNoTextHoldsNobodyUp) {
  add_cases();
  const fs::path plain = add_case("plain", {"ok echo"});  // its prompts stay there: YAML takes no such path
  add_golden(plain, "ok echo", "echo");
  const fs::path odd = dir_ / "cases/\xff";
  fs::create_directory(odd);
  for (const char* file : {"model_config.yaml", "golden_values_dev_here.json"}) fs::rename(plain / file, odd / file);
  run();
  resume();
  ASSERT_TRUE(result_->ok()) << result_->status().message();
  EXPECT_THAT(observer_.order, testing::IsSubsetOf({"\\xff"})) << "the others are kept";
  EXPECT_EQ(verdict("a"), "IDENTICAL");
}

// Both digests of a case whose prompts and known completion lie in files, wherever these are.
TEST(CaseDigest, ChangesWithPromptsAndKnownCompletions) {
  const tests::TemporaryFolder own;
  const fs::path& folder = own.path();
  fs::create_directories(folder / "case");
  std::ofstream(folder / "case/model_config.yaml") << "MODE: inference\nMODEL_ARGS:\n  --load: nowhere\n"
                                                      "  --prompt-file: ${DATA}/prompts.jsonl\n";
  std::string prompts(200'000, 'x');
  const auto write = [&](const std::string& text, const char* name) { std::ofstream(folder / name) << text; };
  write(prompts, "prompts.jsonl");
  write("known", "known.txt");
  TestCase test = discover::discover({(folder / "case").string()})->front();
  test.assay.known_completion = {(folder / "known.txt").string()};
  discover::Variables variables;
  variables.set = {{"DATA", folder.string()}};
  const auto digests = [&] { return std::pair(case_digest(test, variables), case_list_digest({&test}, variables)); };
  auto expect_new = [&, seen = std::vector{digests()}](const char* what) mutable {
    for (const auto& [one, list] : seen) {
      EXPECT_NE(digests().first, one) << what;
      EXPECT_NE(digests().second, list) << what;
    }
    seen.push_back(digests());
  };
  EXPECT_EQ(digests(), digests());
  prompts[100'000] = 'y';
  write(prompts, "prompts.jsonl");
  expect_new("one byte of the prompts");
  write("known better", "known.txt");
  expect_new("known completion");
  const auto before = digests();
  fs::rename(folder / "prompts.jsonl", folder / "case/prompts.jsonl");
  discover::Variables elsewhere;
  elsewhere.set = {{"DATA", (folder / "case").string()}};
  EXPECT_EQ(case_list_digest({&test}, elsewhere), before.second) << "where the prompts lie does not count";
  expect_new("prompts that are gone");
}

TEST_F(Resume, ACaseWhosePromptsHaveChangedIsRunAgain) {
  add_cases();
  run();
  std::ofstream(dir_ / "cases/b/prompts.jsonl") << Json{{"text", "ok other"}} << "\n";
  resume();
  ASSERT_TRUE(result_->ok()) << result_->status().message();
  EXPECT_THAT(observer_.order, testing::ElementsAre("b"));
  EXPECT_NE(verdict("b"), "IDENTICAL");
}

TEST(CaseDigest, ChangesWithConfigAndGoldenAndNothingElse) {
  const tests::TemporaryFolder scratch;
  const fs::path& folder = scratch.path();
  std::ofstream(folder / "model_config.yaml") << "a: 1\n";
  std::string large(200'000, 'x');
  std::ofstream(folder / "g.json") << large;
  TestCase test;
  test.name = "n";
  test.dir = folder.string();
  test.config = (folder / "model_config.yaml").string();
  test.goldens.push_back({.file = "g.json", .environment = "dev", .platform = "any"});
  const std::string before = case_digest(test, {});
  const std::string list = case_list_digest({&test}, {});
  EXPECT_EQ(case_digest(test, {}), before);
  large[100'000] = 'y';
  std::ofstream(folder / "g.json") << large;
  EXPECT_NE(case_digest(test, {}), before) << "every byte counts";
  EXPECT_NE(case_list_digest({&test}, {}), list) << "to every shard, too";
  fs::remove(folder / "g.json");
  EXPECT_NE(case_digest(test, {}), before);
  const std::string own = case_digest(test, {}, {.repeat = 2});
  EXPECT_EQ(case_digest(test, {}, {}), case_digest(test, {}));
  EXPECT_NE(own, case_digest(test, {})) << "what a recipe says counts";
  EXPECT_NE(case_digest(test, {}, {.platform = "dgx_h100", .repeat = 2}), own);
  EXPECT_NE(case_list_digest({&test}, {}, {{.repeat = 2}}), case_list_digest({&test}, {}));
  EXPECT_NE(case_digest(test, {}, {.repeat = 2, .variables = {{"A", "1"}}}), own) << "and its variables";
  EXPECT_NE(case_digest(test, {}, {.variables = {{"A", "1"}}}), case_digest(test, {}, {.variables = {{"A", "2"}}}));
}

}  // namespace
}  // namespace assay::run
