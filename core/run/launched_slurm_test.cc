// Runs on a Slurm of shell scripts.
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

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

}  // namespace
}  // namespace assay::run
