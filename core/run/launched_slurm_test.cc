// Runs on a Slurm of shell scripts.
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <iterator>

#include "core/run/launched_fixture.h"

namespace assay::run {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

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
                             "s=$(cat $f); rm $f\n"
                             "{ SLURM_ARRAY_TASK_ID=0 bash $s; touch over.${f#*.}; rm busy; } &\n"
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
  // The others wait longer than the patience, which is that for a Slurm that does not answer.
  Json options = Json::parse(options_.launcher_options);
  options["workers"]["patience"] = 4;
  options_.launcher_options = options.dump();
  for (const char* name : {"a", "b", "c"}) {
    add(name, *name == 'c' ? "slow 1" : "slow 5000", std::string("ENV_VARS:\n  GROUP: ") + name + "\n");
  }
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

// A Slurm whose arrays have one task; it takes the first of them, and second ones as `second` says, a shell line that
// ends it where it does not.
class SlurmOfSmallArrays : public FullSlurm {
 protected:
  void take(const std::string& second, double patience = 1) {
    Json options = Json::parse(options_.launcher_options);
    options["workers"]["patience"] = patience;
    options["workers"]["tasks"] = 2;
    const std::string jobs = "cd " + dir_.string() + "\n";
    script(options, "sbatch",
           jobs + "case $2 in *.p1.sh) " + second + ";; esac\n" +
               "n=$(($(wc -l <names) + 1)); echo $n >>names; echo $2 >new; mv new pending.$n; echo $n\n");
    std::ifstream in(dir_ / "scontrol");
    std::string line;
    std::getline(in, line);  // #!
    const std::string rest{std::istreambuf_iterator<char>(in), {}};
    script(options, "scontrol", "[ $2 != config ] || { echo MaxArraySize = 1; exit; }\n" + rest);
    options_.launcher_options = options.dump();
  }
  static std::string refuse(const std::string& words) { return "{ echo 'sbatch: error: " + words + "' >&2; exit 1; }"; }
  // Of two cases, that of the first array keeps its verdict; the other's is INFRA.
  void expect_one_of_two(const std::string& words) {
    add("a", "slow 1");
    add("b", "slow 1");
    run();
    ASSERT_TRUE(result_->ok()) << result_->status().message();
    const bool a_first = verdict("a") == "IDENTICAL";
    EXPECT_EQ(verdict(a_first ? "a" : "b"), "IDENTICAL") << reason("a") << " " << reason("b");
    EXPECT_EQ(verdict(a_first ? "b" : "a"), "INFRA");
    EXPECT_THAT(reason(a_first ? "b" : "a"), AllOf(HasSubstr(words), HasSubstr("before this case began")));
  }
};

TEST_F(SlurmOfSmallArrays, AnArrayThatWaitsForRoomLongerThanThePatienceCostsNoCaseWhileAnotherRuns) {
  // The first one ends once the second one is there, 3 s later.
  take("echo >>tries; [ $(wc -l <tries) -gt 2 ] || " + refuse("AssocMaxSubmitJobLimit") + "; touch go");
  for (const char* name : {"a", "b"}) add(name, "await " + go());
  run();
  ASSERT_TRUE(result_->ok()) << result_->status().message();
  for (const char* name : {"a", "b"}) EXPECT_EQ(verdict(name), "IDENTICAL") << reason(name);
  EXPECT_EQ(events(event::kCaseStarted), 2u) << "each ran once";
}

TEST_F(SlurmOfSmallArrays, AnArrayThatWaitsForRoomWaitsForOtherJobsOfTheRunToo) {
  take("[ -e since ] || date +%s >since; [ $(($(date +%s) - $(cat since))) -gt 6 ] || " +
           refuse("AssocMaxSubmitJobLimit") + "; touch go",
       4);
  add("a", "await " + go(), "ENV_VARS:\n  GROUP: a\n");
  for (const char* name : {"b", "c"}) add(name, "slow 1", "ENV_VARS:\n  GROUP: b\n");
  run();
  ASSERT_TRUE(result_->ok()) << result_->status().message();
  for (const char* name : {"a", "b", "c"}) EXPECT_EQ(verdict(name), "IDENTICAL") << reason(name);
}

TEST_F(SlurmOfSmallArrays, AnArrayThatIsNeverTakenCostsItsOwnCasesAlone) {
  take(refuse("AssocMaxSubmitJobLimit"));
  expect_one_of_two("could not be submitted for 1 s: " + (dir_ / "sbatch").string() +
                    ": sbatch: error: AssocMaxSubmitJobLimit");
}

TEST_F(SlurmOfSmallArrays, AnArrayThatIsRefusedCostsItsOwnCasesAlone) {
  take(refuse("Invalid account"));
  expect_one_of_two("sbatch: error: Invalid account");
}

}  // namespace
}  // namespace assay::run
