// Runs whose workers are started by a launcher: the command launcher with a shell, so that every end of a task can be
// had.
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <functional>
#include <memory>
#include <thread>

#include "core/command/process_table.h"
#include "core/run/launch_options.h"
#include "core/run/leash.h"
#include "core/run/run_fixture.h"
#include "core/run/worker_resume.h"

namespace assay::run {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class LaunchedRun : public Run {
 protected:
  void SetUp() override {
    Run::SetUp();
    options_.launcher = "command";
    options_.jobs = 0;
    options_.kill_grace = 200ms;
    options_.environment["PATH"] = "/usr/bin:/bin";
    start({"{argv}"});
  }
  void start(const std::vector<std::string>& words, Json workers = Json::object()) {
    for (const auto& [name, value] : std::vector<std::pair<const char*, double>>{{"poll", 0.1}, {"poll_most", 0.1}}) {
      if (!workers.contains(name)) workers[name] = value;
    }
    options_.launcher_options = Json{{"start", words}, {"workers", workers}}.dump();
  }
  // A case that passes when the engine answers.
  void add(const std::string& name, const std::string& prompt, const std::string& more = "") {
    add_golden(add_case(name, {prompt}, more), prompt, prompt.substr(prompt.find(' ') + 1));
  }
  // A shell line that runs the worker; `file` tells how often it was run before.
  std::string counting(const std::string& line) const {
    const std::string count = dir_ / "count";
    return "n=$(cat " + count + " 2>/dev/null || echo 0); echo $((n+1)) >" + count + "; " + line;
  }
};

TEST_F(LaunchedRun, HasTheVerdictsOfARunOfThisProcess) {
  add("a", "slow 1");
  add("b", "segv");
  add("c", "slow 1");
  run();
  ASSERT_TRUE(result_->ok()) << result_->status().message();
  EXPECT_EQ(verdict("a"), "IDENTICAL") << reason("a");
  EXPECT_EQ(verdict("b"), "CRASHED");
  EXPECT_THAT(reason("b"), HasSubstr("SIGSEGV"));
  EXPECT_EQ(verdict("c"), "IDENTICAL");
}

TEST_F(LaunchedRun, AGroupIsCutIntoTasks) {
  for (const char* name : {"a", "b", "c", "d", "e"}) add(name, "slow 1");
  start({"{argv}"}, {{"cases_per_task", 2}});
  run();
  ASSERT_TRUE(result_->ok());
  EXPECT_EQ(events(event::kWorkerFinished), 3u);
  EXPECT_EQ(events(event::kCaseFinished), 5u);
}

TEST_F(LaunchedRun, ATaskThatIsLostWithItsHostIsRunAgain) {
  add("a", "slow 1");
  start({"sh", "-c", counting("[ $n -gt 1 ] || exit 255; exec \"$@\""), "-", "{argv}"});
  run();
  ASSERT_TRUE(result_->ok());
  EXPECT_EQ(verdict("a"), "IDENTICAL") << reason("a");
  EXPECT_EQ(summary().crashes, 0u);
}

TEST_F(LaunchedRun, ATaskThatFailsBeforeItsFirstEventSaysWhatItsLogSays) {
  add("a", "slow 1");
  start({"sh", "-c", "echo 'libmissing.so: cannot open' >>\"$1\"; exit 126", "-", "{log}", "{argv}"});
  run();
  ASSERT_TRUE(result_->ok());
  EXPECT_EQ(verdict("a"), "INFRA");
  EXPECT_THAT(reason("a"), AllOf(HasSubstr("libmissing.so"), ::testing::Not(HasSubstr("is that folder"))));
}

TEST_F(LaunchedRun, ATaskThatIsLostAgainAndAgainIsInfra) {
  add("a", "slow 1");
  start({"sh", "-c", "echo 'no route' >&2; exit 255", "-", "{argv}"}, {{"losses", 1}});
  run();
  ASSERT_TRUE(result_->ok());
  EXPECT_EQ(verdict("a"), "INFRA");
  EXPECT_THAT(reason("a"), AllOf(HasSubstr("no route"), HasSubstr("lost 2 times")));
}

TEST_F(LaunchedRun, ACaseThatRanWhenItsNodeWasLostIsRunAgainAndIsNoCrash) {
  add("a", "slow 1");
  add("b", "slow 1500");
  // the first time the worker is killed in the middle of b, and the transport says 255
  start(
      {"sh", "-c",
       counting("if [ $n = 0 ]; then \"$@\" & until grep -q 'case_started.*\"case\":\"b' \"$3\"; do sleep 0.05; done; "
                "kill -9 $!; exit 255; fi; exec \"$@\""),
       "-", "{argv}"});
  run();
  ASSERT_TRUE(result_->ok());
  EXPECT_EQ(verdict("a"), "IDENTICAL") << reason("a");
  EXPECT_EQ(verdict("b"), "IDENTICAL") << reason("b");
  EXPECT_EQ(summary().crashes, 0u);
}

TEST_F(LaunchedRun, ATaskThatIsBegunAnewGoesOnAfterItsOwnEvents) {
  add("a", "slow 1");
  add("b", "slow 1000");
  // begun anew within one task, as a requeue does
  start({"sh", "-c",
         "\"$@\" & until grep -q 'case_started.*\"case\":\"b' \"$3\"; do sleep 0.05; done; kill -9 $!; wait; "
         "printf '{{\"event\":\"torn' >>\"$3\"; exec \"$@\"",
         "-", "{argv}"});
  run();
  ASSERT_TRUE(result_->ok());
  EXPECT_EQ(verdict("a"), "IDENTICAL") << reason("a");
  EXPECT_EQ(verdict("b"), "IDENTICAL") << reason("b");
  EXPECT_EQ(events(event::kWorkerStarted), 2u);
  EXPECT_EQ(events(event::kCaseStarted), 3u);
}

TEST_F(LaunchedRun, RepeatsThatEndedAreNotRunAgain) {
  add("a", "slow 300");
  options_.repeat = 3;
  start({"sh", "-c",
         "\"$@\" & until grep -q 'repeat_started.*\"repeat\":2' \"$3\"; do sleep 0.05; done; kill -9 $!; wait; exec "
         "\"$@\"",
         "-", "{argv}"});
  run();
  ASSERT_TRUE(result_->ok());
  EXPECT_EQ(verdict("a"), "IDENTICAL") << reason("a");
  EXPECT_EQ(outcome("a").repeats.size(), 3u);
  EXPECT_EQ(events(event::kRepeatFinished), 3u);
}

TEST_F(LaunchedRun, AFolderThatTheNodeDoesNotSeeIsNamed) {
  add("a", "slow 1");
  start({"sh", "-c", "exec sleep 30", "-", "{argv}"}, {{"appear", 1}});
  run();
  ASSERT_TRUE(result_->ok());
  EXPECT_EQ(verdict("a"), "INFRA");
  EXPECT_THAT(reason("a"), AllOf(HasSubstr("not one event"), HasSubstr("w000.events.jsonl"), HasSubstr("file system")));
}

TEST_F(LaunchedRun, ACaseThatHangsIsCrashedAndTheRestGoesOn) {
  add("a", "hang", "");
  add("b", "slow 1");
  options_.case_timeout = 1s;
  run();
  ASSERT_TRUE(result_->ok());
  EXPECT_EQ(verdict("a"), "CRASHED");
  EXPECT_THAT(reason("a"), HasSubstr("no verdict after 1.0 s"));
  EXPECT_EQ(verdict("b"), "IDENTICAL") << reason("b");
}

TEST_F(LaunchedRun, ATimeLimitOfTheTaskCostsUnfinishedCases) {
  add("a", "slow 1");
  add("b", "slow 60000");
  start({"{argv}"}, {{"seconds", 2}});
  run();
  ASSERT_TRUE(result_->ok());
  EXPECT_EQ(verdict("a"), "IDENTICAL") << reason("a");
  EXPECT_EQ(verdict("b"), "INFRA");
  EXPECT_THAT(reason("b"), HasSubstr("time limit"));
}

TEST_F(LaunchedRun, CancelEndsItAndEveryCaseHasAVerdict) {
  add("a", "slow 60000");
  add("b", "slow 1");
  std::atomic<bool> cancel{false};
  options_.cancel = &cancel;
  std::thread later([&] {
    for (int i = 0; i < 400 && (!fs::exists(dir_ / "out/results.jsonl") || events(event::kCaseStarted) == 0); ++i) {
      std::this_thread::sleep_for(50ms);
    }
    cancel = true;
  });
  run();
  later.join();
  ASSERT_TRUE(result_->ok());
  EXPECT_TRUE(summary().cancelled);
  EXPECT_EQ(verdict("a"), "INFRA");
  EXPECT_THAT(reason("a"), HasSubstr("cancelled while it ran"));
  EXPECT_EQ(verdict("b"), "INFRA");
}

TEST_F(LaunchedRun, EnvVarsReachTheWorkerAndDevicesAreLeftToTheSystem) {
  add_golden(add_case("a", {"env FROM_CASE"}, "ENV_VARS:\n  FROM_CASE: \"it's a 'value'\"\n"), "env FROM_CASE",
             "it's a 'value'");
  add_golden(add_case("b", {"env CUDA_VISIBLE_DEVICES"}, "ENV_VARS:\n  CUDA_VISIBLE_DEVICES: 7\n"),
             "env CUDA_VISIBLE_DEVICES", "(unset)");
  start({"sh", "-c", "exec \"$1\"", "-", "{script}"});
  run();
  ASSERT_TRUE(result_->ok());
  EXPECT_EQ(verdict("a"), "IDENTICAL") << reason("a");
  EXPECT_EQ(verdict("b"), "IDENTICAL") << reason("b");
}

TEST_F(LaunchedRun, EnvVarsReachANodeThatHasNothingOfTheRunnersEnvironment) {
  options_.environment["SHARED"] = "same";
  add_golden(add_case("a", {"env SHARED"}, "ENV_VARS:\n  SHARED: same\n"), "env SHARED", "same");
  start({"env", "-i", "PATH=/usr/bin:/bin", "{script}"});
  run();
  ASSERT_TRUE(result_->ok());
  EXPECT_EQ(verdict("a"), "IDENTICAL") << reason("a");
}

// A Slurm of shell scripts: sbatch runs the whole job before it answers, the first time that it hears of a name with
// "Socket timed out".
class RunOnSlurm : public LaunchedRun {
 protected:
  void SetUp() override {
    LaunchedRun::SetUp();
    options_.launcher = "slurm";
    Json options = {{"workers", {{"poll", 0.1}, {"poll_most", 0.1}}}};
    const std::string jobs = "cd " + dir_.string() + "\n";
    script(options, "sbatch",
           jobs +
               "name=$(basename $2 .sh); n=$(($(wc -l <names) + 1)); echo $name >>names\n"
               "SLURM_ARRAY_TASK_ID=0 bash $2 >/dev/null 2>&1\n"
               "[ $(grep -cx $name names) -gt 1 ] || { echo \"$n\" >id.$name; echo 'Socket timed out' >&2; exit 1; }\n"
               "echo $n\n");
    script(options, "squeue", jobs + "for word; do case $word in --name=*) cat id.${word#--name=};; esac; done\n");
    script(options, "scontrol",
           "echo JobId=$4 ArrayTaskId=0 JobState=COMPLETED Reason=None Restarts=0 ExitCode=0:0 BatchHost=n1\n");
    script(options, "scancel", jobs + "echo \"$*\" >>cancelled\n");
    std::ofstream(dir_ / "names");
    options_.launcher_options = options.dump();
  }
  void script(Json& options, const std::string& name, const std::string& text) const {
    std::ofstream(dir_ / name) << "#!/bin/bash\n" << text;
    fs::permissions(dir_ / name, fs::perms::owner_all);
    options[name] = (dir_ / name).string();
  }
};

TEST_F(RunOnSlurm, AJobWhoseSubmissionGotNoAnswerIsItsOwnGroupsAndKeepsWhatItDid) {
  add("a", "slow 1", "ENV_VARS:\n  GROUP: a\n");
  add("b", "slow 1", "ENV_VARS:\n  GROUP: b\n");
  run();
  ASSERT_TRUE(result_->ok()) << result_->status().message();
  EXPECT_EQ(verdict("a"), "IDENTICAL") << reason("a");
  EXPECT_EQ(verdict("b"), "IDENTICAL") << reason("b");
  EXPECT_EQ(events(event::kCaseStarted), 2u) << "each ran once";
  EXPECT_EQ(summary().crashes, 0u);
  std::ifstream names(dir_ / "names");
  std::string first;
  std::string second;
  names >> first >> second;
  EXPECT_TRUE(first.ends_with("-0") && second.ends_with("-1")) << first << " " << second;
}

TEST_F(RunOnSlurm, WorkersOfAJobThatWasGivenUpFindTheirClaimsRevoked) {
  add("a", "slow 1", "ENV_VARS:\n  GROUP: a\n");
  Json options = Json::parse(options_.launcher_options);
  options["workers"]["patience"] = 1;
  script(options, "sbatch", "echo 'Socket timed out' >&2; exit 1\n");
  script(options, "squeue", "exit 0\n");
  options_.launcher_options = options.dump();
  run();
  ASSERT_TRUE(result_->ok());
  EXPECT_EQ(verdict("a"), "INFRA");
  EXPECT_THAT(reason("a"), HasSubstr("no job could be started for 1 s"));
  const Result<std::string> claim = read_file(dir_ / "out/workers/w000.events.jsonl.claim");
  ASSERT_TRUE(claim.ok()) << claim.status().message();
  EXPECT_EQ(*claim, "revoked\n");
}

TEST_F(LaunchedRun, ALauncherThatIsRefusedLeavesNothingBehind) {
  add("a", "slow 1");
  options_.output = dir_ / "deep/er/out";
  options_.launcher_options = R"({"start": ["{{argv}}"]})";
  run();
  EXPECT_FALSE(result_->ok());
  EXPECT_FALSE(fs::exists(dir_ / "deep"));
  fs::create_directories(options_.output / "cases");
  run();
  EXPECT_FALSE(result_->ok());
  EXPECT_TRUE(fs::exists(options_.output / "cases"));
  EXPECT_FALSE(fs::exists(options_.output / "launcher"));
}

TEST_F(LaunchedRun, AMessageNamesItsLauncherOnce) {
  add("a", "slow 1");
  add("b", "slow 1", "ENV_VARS:\n  GROUP: b\n");
  options_.launcher_options =
      R"({"start": ["sh", "-c", "exit 255", "{script}"], "hosts": ["h"], "host_failures": 1, "workers": {"losses": 1}})";
  run();
  ASSERT_TRUE(result_->ok());
  for (const char* name : {"a", "b"}) {
    EXPECT_EQ(verdict(name), "INFRA");
    EXPECT_EQ(reason(name).find("launcher command"), reason(name).rfind("launcher command")) << reason(name);
  }
}

TEST_F(LaunchedRun, BadOptionsAreOneLine) {
  add("a", "slow 1");
  start({"{argv}"}, {{"task", 2}});
  run();
  EXPECT_THAT(result_->status().message(), AllOf(HasSubstr("unknown member task"), HasSubstr("'tasks'")));
  options_.launcher_options = R"({"strat": []})";
  run();
  EXPECT_THAT(result_->status().message(), AllOf(HasSubstr("strat"), HasSubstr("'start'")));
  options_.launcher = "slrum";
  run();
  EXPECT_EQ(result_->status().code(), StatusCode::kInvalid);
  EXPECT_THAT(result_->status().message(), HasSubstr("--launcher"));
}

TEST(LaunchOptions, WorkersAreReadAndTheRestIsThePlugins) {
  const Result<LaunchOptions> read = parse_launch_options(R"({"partition": "x", "workers": {"tasks": 3, "poll": 20}})");
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->tasks, 3);
  EXPECT_EQ(read->poll_most, 20);
  EXPECT_EQ(read->plugin, R"({"partition":"x"})");
  for (const char* bad : {"[]", R"({"workers": 1})", R"({"workers": {"tasks": 0}})", R"({"workers": {"tasks": 1.5}})",
                          R"({"workers": {"cpus": "2"}})"}) {
    EXPECT_EQ(parse_launch_options(bad).status().code(), StatusCode::kInvalid) << bad;
  }
}

TEST(SplitByCost, CostliestFirstIntoTheCheapest) {
  Plan plan;
  plan.cases.resize(6);
  for (size_t i = 0; i < 6; ++i) plan.cases[i].cost = static_cast<double>(i == 2 ? 9 : i);
  EXPECT_THAT(split_by_cost(plan, {0, 1, 2, 3, 4, 5}, 2, 0), ElementsAre(ElementsAre(2, 3), ElementsAre(0, 1, 4, 5)));
  EXPECT_EQ(split_by_cost(plan, {3, 4, 5}, 9, 0).size(), 3u);
  const auto parts = split_by_cost(plan, {0, 1, 2, 3, 4, 5}, 1, 2);
  ASSERT_EQ(parts.size(), 3u);
  for (const auto& part : parts) EXPECT_EQ(part.size(), 2u);
}

class LeashTest : public ::testing::Test {
 protected:
  void SetUp() override {
    dir_ = fs::path(::testing::TempDir()) / ("assay_leash_" + std::to_string(::getpid()));
    fs::remove_all(dir_);
    fs::create_directories(dir_);
    plan_.run_id = "run";
    plan_.worker = "w000";
    plan_.heartbeat = dir_ / "heartbeat";
    plan_.heartbeat_seconds = 0.5;
  }
  void TearDown() override { fs::remove_all(dir_); }
  // A child that waits on its leash for a while, and its exit code. The heart of run `heart` (empty: none) begins to
  // beat and `meanwhile` is done once the child is there: it is made while this process has one thread.
  int on_leash(std::chrono::milliseconds most, const std::string& heart = "",
               const std::function<void()>& meanwhile = {}) const {
    const pid_t child = ::fork();
    if (child == 0) {
      ::setpgid(0, 0);
      if (::fork() == 0) {
        for (;;) ::pause();
      }
      while (!heart.empty() && !fs::exists(plan_.heartbeat)) std::this_thread::sleep_for(5ms);
      const auto leash = Leash::tie(plan_, dir_ / "events");
      std::this_thread::sleep_for(most);
      ::kill(0, SIGKILL);
    }
    std::unique_ptr<Heartbeat> beating;
    if (!heart.empty()) {
      auto started = Heartbeat::start(plan_.heartbeat, heart, 50ms);
      EXPECT_TRUE(started.ok());
      if (started.ok()) beating = *std::move(started);
    }
    if (meanwhile) meanwhile();
    int status = 0;
    ::waitpid(child, &status, 0);
    const bool alone = ::kill(-child, 0) != 0;  // its own child is gone too, or was not reaped yet
    if (!alone) std::this_thread::sleep_for(100ms);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

  fs::path dir_;
  WorkerPlan plan_;
};

TEST_F(LeashTest, AWorkerWithoutSignsOfLifeEndsItself) {
  EXPECT_EQ(on_leash(10s), Leash::kOrphaned);
  const Result<std::string> text = read_file(dir_ / "events");
  ASSERT_TRUE(text.ok());
  EXPECT_THAT(*text, HasSubstr("worker_orphaned"));
}

TEST_F(LeashTest, WhatLeftItsParentsItsGroupAndItsSessionEndsWithTheWorker) {
  const fs::path note = dir_ / "daemon";
  const pid_t child = ::fork();
  if (child == 0) {
    const auto leash = Leash::tie(plan_, dir_ / "events");
    if (::fork() == 0) {
      ::setsid();
      if (::fork() != 0) ::_exit(0);
      std::ofstream(note) << ::getpid() << std::endl;
      for (;;) ::pause();
    }
    std::this_thread::sleep_for(20s);
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(WIFEXITED(status) ? WEXITSTATUS(status) : -1, Leash::kOrphaned);
  pid_t daemon = 0;
  std::ifstream(note) >> daemon;
  ASSERT_GT(daemon, 0);
  command::ProcessTable table;
  ASSERT_TRUE(table.read());
  for (size_t i = 0; i < table.size(); ++i) EXPECT_FALSE(table.pid(i) == daemon && !table.zombie(i));
  ::kill(daemon, SIGKILL);
}

TEST_F(LeashTest, AHeartbeatKeepsItAlive) { EXPECT_EQ(on_leash(1500ms, "run"), -SIGKILL); }

TEST_F(LeashTest, TheHeartbeatOfAnotherRunIsNone) { EXPECT_EQ(on_leash(10s, "another"), Leash::kOrphaned); }

TEST_F(LeashTest, ARevokedClaimEndsItAndAllThatFollow) {
  const auto revoke = [&] {
    while (!fs::exists(dir_ / "events.claim")) std::this_thread::sleep_for(5ms);
    Leash::revoke(dir_ / "events");
  };
  EXPECT_EQ(on_leash(10s, "run", revoke), Leash::kOrphaned);
  EXPECT_EQ(Leash::tie(plan_, dir_ / "events").status().code(), StatusCode::kCancelled);
}

}  // namespace
}  // namespace assay::run
