// The supervisor with real workers and a test engine that does what each prompt says; plans are made by hand.
#include "core/run/supervisor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "assay/golden.h"
#include "core/run/events.h"
#include "core/run/recorder.h"
#include "tests/temporary_folder.h"

namespace assay::run {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using Json = nlohmann::ordered_json;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr uint64_t kMegabyte = 1 << 20;

class Watcher : public RunObserver {
 public:
  void run_started(const RunInfo&) override {}
  void case_started(const std::string& name, const std::string&) override { started.push_back(name); }
  void case_finished(const CaseOutcome& outcome) override { finished.push_back(outcome.name); }
  void note(const std::string& event, const std::string& line) override { notes.push_back(event + ": " + line); }
  void run_finished(const RunSummary&) override {}

  std::vector<std::string> started;
  std::vector<std::string> finished;
  std::vector<std::string> notes;
};

class SupervisorTest : public ::testing::Test {
 protected:
  void SetUp() override {
    options_.output = dir_ / "out";
    options_.worker = fs::path(ASSAY_BINARY_DIR) / "bin/assay-worker";
    options_.case_timeout = 30s;
    options_.load_timeout = 30s;
    options_.kill_grace = 100ms;
    options_.memory_limit = 4000 * kMegabyte;
  }

  // Adds a group whose cases are named by their first prompt.
  void add_group(const std::vector<std::vector<std::string>>& cases, const std::string& engine = "misbehaving") {
    Group group;
    group.head.output = options_.output.string();
    group.head.engine = engine;
    group.head.model = "{}";
    group.head.environment_name = "dev";
    group.head.platform = "cpu_test";
    group.head.plugins.install_dir = fs::path(ASSAY_BINARY_DIR) / "tests/plugins";
    for (const auto& prompts : cases) {
      PlannedCase planned;
      planned.order.id = "case" + std::to_string(plan_.cases.size());
      planned.order.name = planned.outcome.name = prompts.empty() ? "empty" : prompts[0];
      planned.order.engine_options = "{}";
      planned.order.prompts = prompts;
      planned.order.dir = dir_.string();
      planned.order.metrics = {"generated_text"};
      planned.timeout = options_.case_timeout;
      group.cases.push_back(plan_.cases.size());
      plan_.cases.push_back(planned);
    }
    plan_.groups.push_back(group);
  }

  void run() {
    Result<Journal> journal = Journal::open(options_.output);
    ASSERT_TRUE(journal.ok()) << journal.status().message();
    Recorder recorder(plan_, *journal, watcher_);
    Supervisor supervisor(options_, plan_, recorder);
    supervisor.run();
    crashes_ = supervisor.crashes();
    cancelled_ = supervisor.cancelled();
    EXPECT_TRUE(recorder.journal_status().ok());
    for (size_t i = 0; i < plan_.cases.size(); ++i) EXPECT_TRUE(recorder.finished(i)) << i;
  }

  const CaseVerdict& verdict(size_t index) const { return plan_.cases[index].outcome.verdict; }
  std::vector<std::string> verdicts() const {
    std::vector<std::string> names;
    for (const PlannedCase& planned : plan_.cases) names.emplace_back(to_string(planned.outcome.verdict.verdict));
    return names;
  }
  size_t events(std::string_view name) const {
    size_t count = 0;
    const Result<std::vector<std::string>> lines = read_event_lines(options_.output / "results.jsonl");
    for (const std::string& line : *lines) {
      const Result<Json> event = parse_line(line);
      EXPECT_TRUE(event.ok()) << line;
      if (event.ok() && (*event)["event"] == name) ++count;
    }
    return count;
  }

  const tests::TemporaryFolder own_folder_;
  const fs::path dir_ = own_folder_.path();
  RunOptions options_;
  Plan plan_;
  Watcher watcher_;
  uint64_t crashes_ = 0;
  bool cancelled_ = false;
};

// No case here has a golden, so a case that ran to its end is NOT_COMPARABLE.
constexpr const char* kRan = "NOT_COMPARABLE";

TEST_F(SupervisorTest, TwentyCasesOfOneGroupShareOneLoad) {
  add_group(std::vector<std::vector<std::string>>(20, {"ok text", "ok more"}));
  run();
  EXPECT_THAT(verdicts(), Each(std::string(kRan)));
  EXPECT_EQ(events(event::kLoadFinished), 1u);
  EXPECT_EQ(events(event::kWorkerStarted), 1u);
  EXPECT_EQ(events(event::kCaseFinished), 20u);
  EXPECT_EQ(events(event::kRequestFinished), 40u);
  EXPECT_EQ(watcher_.started.size(), 20u);
  EXPECT_EQ(watcher_.finished.size(), 20u);
  EXPECT_TRUE(fs::exists(options_.output / "cases/case7/actual.json"));
  EXPECT_EQ(plan_.cases[7].outcome.actual, (options_.output / "cases/case7/actual.json").string());
  EXPECT_EQ(plan_.cases[7].outcome.summary.requests, 2u);
  EXPECT_EQ(plan_.cases[7].outcome.summary.generated_tokens, 8u);
}

TEST_F(SupervisorTest, DeathOfAWorkerCostsTheRunningCaseAlone) {
  add_group({{"ok a"}, {"ok before", "abort"}, {"ok b"}, {"segv"}, {"ok c"}, {"exit"}, {"kill"}, {"ok d"}});
  run();
  EXPECT_THAT(verdicts(), ElementsAre(kRan, "CRASHED", kRan, "CRASHED", kRan, "CRASHED", "CRASHED", kRan));
  EXPECT_THAT(verdict(1).reason, AllOf(HasSubstr("SIGABRT"), HasSubstr("last finished request: 0"),
                                       HasSubstr("last output: engine: about to abort")));
  EXPECT_THAT(verdict(3).reason, AllOf(HasSubstr("SIGSEGV"), HasSubstr("no request had finished")));
  EXPECT_THAT(verdict(5).reason, HasSubstr("exit code 3"));
  EXPECT_THAT(verdict(6).reason, HasSubstr("SIGKILL"));
  EXPECT_EQ(crashes_, 4u);
  EXPECT_EQ(events(event::kWorkerCrashed), 4u);
  EXPECT_EQ(events(event::kLoadFinished), 5u);
}

TEST_F(SupervisorTest, ALostDeviceCostsTheRunningCaseAlone) {
  add_group({{"ok a"}, {"lose"}, {"ok b"}, {"ok c"}, {"lose"}});
  run();
  EXPECT_THAT(verdicts(), ElementsAre(kRan, "INFRA", kRan, kRan, "INFRA"));
  EXPECT_THAT(verdict(1).reason, HasSubstr("the device is lost"));
  EXPECT_EQ(events(event::kLoadFinished), 2u);
  EXPECT_EQ(crashes_, 1u);
}

TEST_F(SupervisorTest, AnEngineWithoutRoomForItsCacheIsTheMachinesFault) {
  add_group({{"ok a"}, {"ok b"}, {"ok c"}});
  plan_.cases[1].order.engine_options = R"({"large_cache":true})";
  run();
  EXPECT_THAT(verdicts(), ElementsAre(kRan, "INFRA", kRan));
  EXPECT_THAT(verdict(1).reason, HasSubstr("engine misbehaving: cache: 9 GB needed, 1 GB free"));
}

TEST_F(SupervisorTest, CheckpointWrittenAnewDoesNotOutliveTheWorkerThatDied) {
  add_group({{"kill"}, {"hang"}, {"ok a"}});
  plan_.cases[1].timeout = 200ms;
  const auto resaved = [&](const char* id) { return options_.output / "cases" / id / "resaved"; };
  for (const char* id : {"case0", "case1"}) {
    fs::create_directories(resaved(id));
    std::ofstream(resaved(id) / "weights") << "1";
  }
  run();
  EXPECT_THAT(verdicts(), ElementsAre("CRASHED", "CRASHED", kRan));
  EXPECT_FALSE(fs::exists(resaved("case0")));
  EXPECT_FALSE(fs::exists(resaved("case1")));
}

TEST_F(SupervisorTest, HangEndsAtTheCaseTimeout) {
  add_group({{"hang"}, {"ok a"}});
  plan_.cases[0].timeout = 200ms;
  run();
  EXPECT_THAT(verdicts(), ElementsAre("CRASHED", kRan));
  EXPECT_THAT(verdict(0).reason, AllOf(HasSubstr("no verdict after 0.2 s"), HasSubstr("ASSAY.timeout")));
}

TEST_F(SupervisorTest, EngineThatIgnoresTermIsKilledAfterTheGrace) {
  add_group({{"stubborn"}, {"ok a"}});
  plan_.cases[0].timeout = 200ms;
  run();
  EXPECT_THAT(verdicts(), ElementsAre("CRASHED", kRan));
}

TEST_F(SupervisorTest, MemoryBeyondTheLimitEndsTheCase) {
  options_.memory_limit = 200 * kMegabyte;
  add_group({{"eat"}, {"ok a"}});
  run();
  EXPECT_THAT(verdicts(), ElementsAre("CRASHED", kRan));
  EXPECT_THAT(verdict(0).reason, AllOf(HasSubstr("memory"), HasSubstr("the limit is 0.21 GB")));
}

TEST_F(SupervisorTest, FailedRequestIsNamedAndTheOthersFinish) {
  add_group({{"ok a", "fail too long by far", "ok b", "refuse"}});
  run();
  EXPECT_THAT(verdicts(), ElementsAre("INVALID"));
  EXPECT_THAT(verdict(0).reason, AllOf(HasSubstr("request 3: prompt refused"), HasSubstr("2 of 4 requests failed")));
  EXPECT_EQ(events(event::kRequestFinished), 2u);
  EXPECT_EQ(events(event::kRequestFailed), 2u);
  const Result<ResultSet> actual = read_results((options_.output / "cases/case0/actual.json").string());
  ASSERT_TRUE(actual.ok()) << actual.status().message();
  EXPECT_EQ(actual->requests.size(), 2u);
}

TEST_F(SupervisorTest, ExceptionAndBrokenStepAreVerdictsOfTheirCase) {
  add_group({{"throw"}, {"break"}, {"ok a"}});
  run();
  EXPECT_THAT(verdicts(), ElementsAre("CRASHED", "CRASHED", kRan));
  EXPECT_THAT(verdict(0).reason, HasSubstr("thrown by the engine"));
  EXPECT_THAT(verdict(1).reason, HasSubstr("the engine broke"));
  EXPECT_EQ(crashes_, 0u);
}

TEST_F(SupervisorTest, GarbageOnStdoutStaysInTheLogOfTheCase) {
  add_group({{"garbage"}, {"ok a"}});
  run();
  EXPECT_THAT(verdicts(), ElementsAre(kRan, kRan));
  EXPECT_THAT(*read_file(options_.output / "cases/case0/engine.log"), HasSubstr("\"case\": 7"));
  EXPECT_EQ(*read_file(options_.output / "cases/case1/engine.log"), "");
}

TEST_F(SupervisorTest, ChildOfTheEngineDoesNotOutliveTheWorker) {
  const std::string file = (dir_ / "pid").string();
  add_group({{"spawn " + file}, {"ok a"}});
  run();
  EXPECT_THAT(verdicts(), ElementsAre(kRan, kRan));
  const pid_t child = std::stoi(*read_file(file));
  const auto alive = [child] {
    const Result<std::string> stat = read_file("/proc/" + std::to_string(child) + "/stat");
    return stat.ok() && stat->find(") Z ") == std::string::npos;
  };
  for (int i = 0; i < 400 && alive(); ++i) std::this_thread::sleep_for(5ms);
  EXPECT_FALSE(alive());
}

TEST_F(SupervisorTest, MissingEngineMarksTheWholeGroupOnce) {
  add_group({{"ok a"}, {"ok b"}}, "absent");
  add_group({{"ok c"}});
  run();
  EXPECT_THAT(verdicts(), ElementsAre("INVALID", "INVALID", kRan));
  EXPECT_THAT(verdict(1).reason, HasSubstr("no engine 'absent'"));
  EXPECT_EQ(events(event::kLoadFailed), 1u);
}

TEST_F(SupervisorTest, ModelIsLoadedOnceForItsGroupAndDescribedByItsBackend) {
  add_group({{"ok a"}, {"ok b"}, {"ok c"}});
  plan_.groups[0].head.backend = "fake_high";
  plan_.groups[0].head.model = R"({"config": {"arithmetic": "bf16"}, "checkpoint": "nowhere", "tokenizer": {}})";
  run();
  EXPECT_THAT(verdicts(), ElementsAre(kRan, kRan, kRan));
  EXPECT_EQ(events(event::kLoadFinished), 1u);
  const CaseSummary& summary = plan_.cases[2].outcome.summary;
  EXPECT_EQ(summary.backend, "fake_high");
  EXPECT_EQ(summary.device, "high device");
  EXPECT_EQ(summary.weight_bytes, 1234u);
  EXPECT_EQ(summary.arithmetic, "bf16");
  EXPECT_GT(summary.peak_rss, 0u);
}

TEST_F(SupervisorTest, DeviceThatFailsAtTheLoadIsInfraForTheWholeGroup) {
  add_group({{"ok a"}, {"ok b"}});
  plan_.groups[0].head.backend = "fake_absent";
  plan_.groups[0].head.model = R"({"config": {}, "checkpoint": "nowhere", "tokenizer": {}})";
  run();
  EXPECT_THAT(verdicts(), ElementsAre("INFRA", "INFRA"));
  EXPECT_THAT(verdict(1).reason, HasSubstr("backend fake_absent: fake backend: no device"));
  EXPECT_EQ(events(event::kLoadFailed), 1u);
}

TEST_F(SupervisorTest, BackendWithoutAModelIsInvalid) {
  add_group({{"ok a"}});
  plan_.groups[0].head.backend = "fake_high";
  run();
  EXPECT_THAT(verdicts(), ElementsAre("INVALID"));
  EXPECT_THAT(verdict(0).reason, HasSubstr("add --load"));
}

TEST_F(SupervisorTest, MissingWorkerExecutableIsInfra) {
  options_.worker = "/nowhere/assay-worker";
  add_group({{"ok a"}});
  run();
  EXPECT_THAT(verdicts(), ElementsAre("INFRA"));
  EXPECT_THAT(verdict(0).reason, HasSubstr("cannot be executed"));
}

TEST_F(SupervisorTest, WorkerThatDiesAtItsStartIsGivenUpAfterTwoAttempts) {
  options_.worker = "/bin/false";
  add_group({{"ok a"}, {"ok b"}});
  run();
  EXPECT_THAT(verdicts(), ElementsAre("INFRA", "INFRA"));
  EXPECT_THAT(verdict(0).reason, HasSubstr("while it started or loaded, 2 time(s): exit code 1"));
  EXPECT_EQ(crashes_, 2u);
}

TEST_F(SupervisorTest, LoadThatNeverEndsIsInfra) {
  options_.load_timeout = 200ms;
  add_group({{"ok a"}});
  // A worker that never says anything.
  const fs::path script = dir_ / "sleeper";
  ASSERT_TRUE(write_file(script, "#!/bin/sh\nexec sleep 600\n").ok());
  fs::permissions(script, fs::perms::owner_all);
  options_.worker = script;
  plan_.groups[0].environment["PATH"] = "/usr/bin:/bin";
  run();
  EXPECT_THAT(verdicts(), ElementsAre("INFRA"));
  EXPECT_THAT(verdict(0).reason, HasSubstr("load not over after 0.2 s"));
}

TEST_F(SupervisorTest, TwoGroupsRunAtOnceWithTwoJobs) {
  options_.jobs = 2;
  add_group({{"slow 400"}});
  add_group({{"slow 400"}});
  const auto begin = std::chrono::steady_clock::now();
  run();
  EXPECT_THAT(verdicts(), ElementsAre(kRan, kRan));
  EXPECT_THAT(watcher_.started.size(), 2u);
  EXPECT_THAT(watcher_.finished.size(), 2u);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 400ms);
  EXPECT_EQ(events(event::kLoadFinished), 2u);
}

TEST_F(SupervisorTest, CancelEndsWorkersAndGivesEveryCaseAVerdict) {
  std::atomic<bool> cancel = false;
  options_.cancel = &cancel;
  add_group({{"ok a"}, {"hang"}, {"ok b"}});
  add_group({{"ok c"}});
  std::thread canceller([&] {
    while (!fs::exists(options_.output / "cases/case1/engine.log")) std::this_thread::sleep_for(5ms);
    cancel = true;
  });
  run();
  canceller.join();
  EXPECT_TRUE(cancelled_);
  EXPECT_THAT(verdicts(), ElementsAre(kRan, "INFRA", "INFRA", "INFRA"));
  EXPECT_THAT(verdict(1).reason, HasSubstr("cancelled while it ran"));
  EXPECT_THAT(verdict(2).reason, HasSubstr("cancelled before it started"));
  EXPECT_THAT(verdict(3).reason, HasSubstr("cancelled before it started"));
}

TEST_F(SupervisorTest, KilledWorkerLosesTheRunningCaseAndNoFinishedOne) {
  add_group({{"ok a"}, {"hang"}, {"ok b"}});
  std::thread killer([&] {
    while (!fs::exists(options_.output / "cases/case1/engine.log")) std::this_thread::sleep_for(5ms);
    const Result<std::vector<std::string>> lines = read_event_lines(options_.output / "workers/w000.events.jsonl");
    ::kill((*parse_line((*lines)[0]))["pid"].get<pid_t>(), SIGKILL);
  });
  run();
  killer.join();
  EXPECT_THAT(verdicts(), ElementsAre(kRan, "CRASHED", kRan));
  EXPECT_THAT(verdict(1).reason, HasSubstr("SIGKILL"));
}

TEST_F(SupervisorTest, LinesThatAreNoEventsAreSkipped) {
  add_group({{"ok a"}});
  const fs::path script = dir_ / "liar";
  ASSERT_TRUE(
      write_file(script,
                 "#!/bin/sh\nprintf '%s\\n' 'garbage' '{\"event\":7}' '{\"event\":\"case_finished\",\"case\":7}' "
                 "'{\"event\":\"case_started\",\"case\":\"case0\",\"name\":\"x\",\"worker\":5}' "
                 "'{\"event\":\"case_finished\",\"case\":\"case0\",\"verdict\":3}' > \"$2\"\n"
                 "printf '{\"event\": \"torn' >> \"$2\"\n")
          .ok());
  fs::permissions(script, fs::perms::owner_all);
  options_.worker = script;
  run();
  EXPECT_THAT(verdicts(), ElementsAre("INFRA"));
}

}  // namespace
}  // namespace assay::run
