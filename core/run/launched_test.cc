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
  EXPECT_TRUE(fs::exists(dir_ / "out/workers/w000.events.jsonl.revoked"));
}

// A Slurm that takes one job at a time; `busy` is there meanwhile. A process of the test's own is its node: what sbatch
// leaves behind ends with it.
class FullSlurm : public RunOnSlurm {
 protected:
  void SetUp() override {
    RunOnSlurm::SetUp();
    Json options = Json::parse(options_.launcher_options);
    options["workers"]["patience"] = 1;
    const std::string jobs = "cd " + dir_.string() + "\n";
    script(options, "sbatch",
           jobs +
               "[ ! -e busy ] || { echo 'sbatch: error: AssocMaxSubmitJobLimit' >&2; exit 1; }\n"
               "touch busy; n=$(($(wc -l <names) + 1)); echo $n >>names\n"
               "echo $2 >new; mv new pending.$n; echo $n\n");
    script(options, "squeue", "exit 0\n");
    script(options, "scontrol",
           jobs +
               "s=RUNNING; [ ! -e over.$4 ] || s=COMPLETED\n"
               "echo JobId=$4 ArrayTaskId=0 JobState=$s Reason=None Restarts=0 ExitCode=0:0 BatchHost=n1\n");
    options_.launcher_options = options.dump();
    node_ = ::fork();
    if (node_ != 0) return;
    ::setpgid(0, 0);
    const std::string line = jobs +
                             "while sleep 0.05; do for f in pending.*; do [ -e $f ] || continue\n"
                             "s=$(cat $f); rm $f; SLURM_ARRAY_TASK_ID=0 bash $s; touch over.${f#*.}; rm busy\n"
                             "done; done >/dev/null 2>&1\n";
    ::execl("/bin/bash", "bash", "-c", line.c_str(), nullptr);
    ::_exit(99);
  }
  void TearDown() override {
    ::kill(-node_, SIGKILL);
    ::waitpid(node_, nullptr, 0);
    RunOnSlurm::TearDown();
  }

  pid_t node_ = 0;
};

TEST_F(FullSlurm, ALimitOfJobsThatOursFillCostsNoCaseHoweverLongItLasts) {
  for (const char* name : {"a", "b", "c"}) add(name, "slow 2500", std::string("ENV_VARS:\n  GROUP: ") + name + "\n");
  run();
  ASSERT_TRUE(result_->ok()) << result_->status().message();
  for (const char* name : {"a", "b", "c"}) EXPECT_EQ(verdict(name), "IDENTICAL") << reason(name);
}

TEST_F(FullSlurm, ALimitThatOthersFillIsAnOutage) {
  add("a", "slow 1");
  std::ofstream(dir_ / "busy");
  run();
  ASSERT_TRUE(result_->ok());
  EXPECT_EQ(verdict("a"), "INFRA");
  EXPECT_THAT(reason("a"), AllOf(HasSubstr("for 1 s"), HasSubstr("AssocMaxSubmitJobLimit")));
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
    start({"{argv}"}, {{"heartbeat", 4}});
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
  first_session("slow 3000");
  const pid_t old = old_worker();
  for (int i = 0; i < 400 && old_events().find("case_started") == std::string::npos; ++i) {
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
