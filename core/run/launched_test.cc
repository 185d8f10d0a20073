// Runs whose workers are started by a launcher.
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <functional>
#include <memory>
#include <thread>

#include "core/run/launch_options.h"
#include "core/run/launched_fixture.h"
#include "core/run/leash.h"
#include "core/run/worker_resume.h"

namespace assay::run {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

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

// The command that stood for the worker died, which says nothing of a worker on another machine.
TEST_F(LaunchedRun, AWorkerWhoseCommandDiedFindsItsClaimRevoked) {
  add("a", "slow 1");
  start({"sh", "-c", "echo 'forbidden by admission webhook' >&2; exit 1", "-", "{argv}"});
  run();
  ASSERT_TRUE(result_->ok());
  EXPECT_EQ(verdict("a"), "INFRA");
  EXPECT_THAT(reason("a"), HasSubstr("forbidden by admission webhook"));
  EXPECT_TRUE(fs::exists(dir_ / "out/workers/w000.events.jsonl.revoked"));
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
  add("b", "await " + go());
  // the first time the worker is killed in the middle of b, and the transport says 255
  start(
      {"sh", "-c",
       counting("if [ $n = 0 ]; then \"$@\" & until grep -q 'case_started.*\"case\":\"b' \"$3\"; do sleep 0.05; done; "
                "kill -9 $!; exit 255; fi; touch " +
                go() + "; exec \"$@\""),
       "-", "{argv}"});
  run();
  ASSERT_TRUE(result_->ok());
  EXPECT_EQ(verdict("a"), "IDENTICAL") << reason("a");
  EXPECT_EQ(verdict("b"), "IDENTICAL") << reason("b");
  EXPECT_EQ(summary().crashes, 0u);
}

TEST_F(LaunchedRun, ATaskThatIsBegunAnewGoesOnAfterItsOwnEvents) {
  add("a", "slow 1");
  add("b", "await " + go());
  // begun anew within one task, as a requeue does
  start({"sh", "-c",
         "\"$@\" & until grep -q 'case_started.*\"case\":\"b' \"$3\"; do sleep 0.05; done; kill -9 $!; wait; touch " +
             go() + "; printf '{{\"event\":\"torn' >>\"$3\"; exec \"$@\"",
         "-", "{argv}"});
  run();
  ASSERT_TRUE(result_->ok());
  EXPECT_EQ(verdict("a"), "IDENTICAL") << reason("a");
  EXPECT_EQ(verdict("b"), "IDENTICAL") << reason("b");
  EXPECT_EQ(events(event::kWorkerStarted), 2u);
  EXPECT_EQ(events(event::kCaseStarted), 3u);
}

TEST_F(LaunchedRun, RepeatsThatEndedAreNotRunAgain) {
  add("a", "take " + go());
  options_.repeat = 3;
  start({"sh", "-c",
         "go=" + go() +
             "; touch $go; \"$@\" & until grep -q 'repeat_started.*\"repeat\":2' \"$3\"; do sleep 0.05; done; kill -9 "
             "$!; "
             "wait; (until grep -q case_finished \"$3\"; do touch $go; sleep 0.05; done) & exec \"$@\"",
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
  add_golden(add_case("a", {"hang"}, "", "  engine: misbehaving\n  timeout: 1s\n"), "hang", "");
  add("b", "slow 1");
  run();
  ASSERT_TRUE(result_->ok());
  EXPECT_EQ(verdict("a"), "CRASHED");
  EXPECT_THAT(reason("a"), HasSubstr("no verdict after 1.0 s"));
  EXPECT_EQ(verdict("b"), "IDENTICAL") << reason("b");
}

TEST_F(LaunchedRun, ATimeLimitOfTheTaskCostsUnfinishedCases) {
  add("a", "slow 1");
  add("b", "slow 60000");
  start({"{argv}"}, {{"seconds", 6}});
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
    for (int i = 0; i < 2000 && (!fs::exists(dir_ / "out/results.jsonl") || events(event::kCaseStarted) == 0); ++i) {
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

TEST_F(LaunchedRun, ALogThatCannotBeLookedAtCostsNoRun) {
  add("a", "slow 60000");
  const std::string log = dir_ / "out/cases/a/engine.log";
  start({"sh", "-c",
         "\"$@\" & until grep -q 'case_started' \"$3\"; do sleep 0.05; done; rm -f " + log + "; ln -s " + log + " " +
             log + "; kill -9 $!; exit 3",
         "-", "{argv}"});
  run();
  ASSERT_TRUE(result_->ok()) << result_->status().message();
  EXPECT_EQ(verdict("a"), "CRASHED") << reason("a");
  EXPECT_EQ(read_event_lines(log).status().code(), StatusCode::kInfra) << "it is there, and cannot be read";
  EXPECT_EQ(read_event_lines(dir_ / "absent").status().code(), StatusCode::kNotFound);
}

TEST_F(LaunchedRun, SecretsThatACaseOfALostWorkerLeftAreTakenOut) {
  add("a", "slow 60000");
  options_.environment["SOME_KEY"] = "geheim-4711";
  const std::string folder = dir_ / "out/cases/a";
  start({"sh", "-c",
         "\"$@\" & until grep -q 'case_started' \"$3\"; do sleep 0.05; done; mkdir -p " + folder +
             "/below; echo 'key geheim-4711' | tee " + folder + "/request.json >" + folder +
             "/below/note.txt; kill -9 $!; exit 255",
         "-", "{argv}"},
        {{"losses", 0}});
  run();
  ASSERT_TRUE(result_->ok());
  EXPECT_EQ(verdict("a"), "INFRA") << reason("a");
  EXPECT_EQ(*read_file(folder + "/request.json"), "key ***\n");
  EXPECT_EQ(*read_file(folder + "/below/note.txt"), "key ***\n");
}

// The first session was killed as it were: its worker is started by hand, and nobody has revoked its claim.
class ResumedLaunch : public LaunchedRun {
 protected:
  void first_session(const std::string& prompt) {
    add("a", prompt);
    start({"sh", "-c", "exit 255", "-", "{argv}"}, {{"losses", 0}, {"heartbeat", 4}});
    run();
    ASSERT_TRUE(result_->ok()) << result_->status().message();
    ASSERT_EQ(verdict("a"), "INFRA");
    fs::remove(events_file().string() + ".revoked");
    start({"sh", "-c", "touch " + go() + "; exec \"$@\"", "-", "{argv}"}, {{"heartbeat", 4}});
    options_.resume = true;
  }
  fs::path events_file() const { return dir_ / "out/workers/w000.events.jsonl"; }
  pid_t old_worker() const {
    const pid_t child = ::fork();
    if (child != 0) return child;
    ::execl(options_.worker.c_str(), options_.worker.c_str(), (dir_ / "out/workers/w000.plan.json").c_str(),
            events_file().c_str(), nullptr);
    ::_exit(99);
  }
  static int end_of(pid_t child) {
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  std::string old_events() const {
    const Result<std::string> text = read_file(events_file());
    return text ? *text : "";
  }
};

TEST_F(ResumedLaunch, AWorkerOfTheEarlierSessionEndsBeforeItsCasesAreRunAgain) {
  first_session("await " + go());
  const pid_t old = old_worker();
  for (int i = 0; i < 6000 && old_events().find("case_started") == std::string::npos; ++i) {
    std::this_thread::sleep_for(10ms);
  }
  run();
  ASSERT_TRUE(result_->ok()) << result_->status().message();
  EXPECT_EQ(end_of(old), Leash::kOrphaned);
  EXPECT_EQ(old_events().find("case_finished"), std::string::npos);
  EXPECT_EQ(verdict("a"), "IDENTICAL") << reason("a");
}

TEST_F(ResumedLaunch, AJobOfTheEarlierSessionThatStartsLateDoesNothing) {
  first_session("slow 1");
  run();
  ASSERT_TRUE(result_->ok()) << result_->status().message();
  EXPECT_EQ(verdict("a"), "IDENTICAL") << reason("a");
  const std::string before = old_events();
  const fs::file_time_type written = fs::last_write_time(dir_ / "out/cases/a/actual.json");
  EXPECT_EQ(end_of(old_worker()), 2);
  EXPECT_EQ(old_events(), before);
  EXPECT_EQ(fs::last_write_time(dir_ / "out/cases/a/actual.json"), written);
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

}  // namespace
}  // namespace assay::run
