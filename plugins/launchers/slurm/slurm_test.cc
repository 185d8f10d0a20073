// The launcher against commands that say what the test wants.
#include "plugins/launchers/slurm/slurm.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "assay/sdk.hpp"
#include "tests/temporary_folder.h"

namespace assay::launchers {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class Slurm : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(dir_ / "launcher");
    ::setenv("FAKE_SLURM", dir_.c_str(), 1);
    nlohmann::json options = {{"command_seconds", 5}};
    for (const char* name : {"sbatch", "scontrol", "squeue", "scancel", "sacct"}) {
      fs::create_symlink(fs::path(ASSAY_SOURCE_DIR) / "plugins/launchers/slurm/testdata/fake_slurm", dir_ / name);
      options[name] = (dir_ / name).string();
    }
    options_ = options.dump();
    say("sbatch", "41\n");
    say("sacct", "Slurm accounting storage is disabled\n", 1);
    open();
  }
  void open() {
    const std::string folder = dir_ / "launcher";
    auto config = sdk::sized<assay_launcher_config>();
    config.options = sdk::view(options_);
    config.folder = sdk::view(folder);
    Result<std::unique_ptr<SlurmLauncher>> opened = SlurmLauncher::open(config);
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    launcher_ = *std::move(opened);
  }
  void say(const std::string& name, const std::string& out, int code = 0, const std::string& err = "") {
    std::ofstream(dir_ / (name + ".out")) << out;
    std::ofstream(dir_ / (name + ".err")) << err;
    std::ofstream(dir_ / (name + ".code")) << code;
  }
  std::string calls(const std::string& name) const {
    std::ifstream file(dir_ / (name + ".calls"));
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static Job job(size_t tasks = 1) {
    Job made;
    made.name = "assay-x-0";
    made.tasks.assign(tasks, {{"/bin/true"}, "/dev/null"});
    return made;
  }
  State first(uint64_t id) {
    const Result<std::vector<State>> states = launcher_->poll(id);
    EXPECT_TRUE(states.ok()) << states.status().message();
    return states.ok() ? states->front() : State();
  }

  const tests::TemporaryFolder folder_;
  const fs::path& dir_ = folder_.path();
  std::string options_;
  std::unique_ptr<SlurmLauncher> launcher_;
};

TEST_F(Slurm, TheIdIsTheLastLineOfWhatSbatchPrints) {
  EXPECT_EQ(*launcher_->start(job()), 41u);
  say("sbatch", "Welcome to the cluster\n42;tests\n");
  EXPECT_EQ(*launcher_->start(job()), 42u);
  EXPECT_THAT(calls("sbatch"), HasSubstr("--parsable " + (dir_ / "launcher/assay-x-0.sh").string()));
  say("sbatch", "no number\n");
  EXPECT_EQ(launcher_->start(job()).status().code(), StatusCode::kInfra);
}

TEST_F(Slurm, ARefusedJobIsToldInTheSchedulersWords) {
  for (const char* words : {"Batch job submission failed: Invalid partition name specified",
                            "Batch job submission failed: Invalid account or account/partition combination specified",
                            "Batch job submission failed: Invalid generic resource (gres) specification"}) {
    say("sbatch", "", 1, std::string("sbatch: error: ") + words + "\n");
    const Result<uint64_t> id = launcher_->start(job());
    EXPECT_EQ(id.status().code(), StatusCode::kInfra);
    EXPECT_THAT(id.status().message(), HasSubstr(words));
  }
}

TEST_F(Slurm, WhatPassesIsTriedAgainAndAJobThatWasMadeAllTheSameIsFound) {
  say("sbatch", "", 1, "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation\n");
  EXPECT_EQ(launcher_->start(job()).status().code(), StatusCode::kExhausted);
  say("squeue", "77\n77\n");
  EXPECT_EQ(*launcher_->start(job()), 77u);
  EXPECT_THAT(calls("squeue"), HasSubstr("--name=assay-x-0"));
}

TEST_F(Slurm, WhatPassesIsTriedAgainWhereNoJobWasMade) {
  say("sbatch", "", 1,
      "sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect failure)\n");
  EXPECT_EQ(launcher_->start(job()).status().code(), StatusCode::kExhausted);
  say("squeue", "", 1, "slurm_load_jobs error: Unable to contact slurm controller (connect failure)\n");
  EXPECT_EQ(launcher_->start(job()).status().code(), StatusCode::kExhausted);
  say("squeue", "");
  say("sbatch", "43\n");
  EXPECT_EQ(*launcher_->start(job()), 43u);
}

TEST_F(Slurm, AControllerThatIsDownIsNoEndOfTheTask) {
  const uint64_t id = *launcher_->start(job());
  say("scontrol", "", 1, "slurm_load_jobs error: Unable to contact slurm controller (connect failure)\n");
  EXPECT_THAT(launcher_->poll(id).status().message(), HasSubstr("Unable to contact"));
  say("scontrol", "JobId=41 ArrayTaskId=0 JobState=RUNNING Reason=None Restarts=1 ExitCode=0:0 BatchHost=n2\n");
  const State state = first(id);
  EXPECT_EQ(state.phase, ASSAY_TASK_RUNNING);
  EXPECT_EQ(state.restarts, 1);
  EXPECT_EQ(state.where, "n2");
}

TEST_F(Slurm, ATaskThatSlurmHasForgottenIsKnownByItsExitCode) {
  const uint64_t id = *launcher_->start(job(2));
  say("scontrol", "", 1, "slurm_load_jobs error: Invalid job id specified\n");
  std::ofstream(dir_ / "launcher/assay-x-0.0.end") << "139\n";
  const Result<std::vector<State>> states = launcher_->poll(id);
  ASSERT_TRUE(states.ok()) << states.status().message();
  EXPECT_EQ((*states)[0].phase, ASSAY_TASK_EXITED);
  EXPECT_EQ((*states)[0].signal, 11);
  EXPECT_EQ((*states)[1].phase, ASSAY_TASK_LOST);
  EXPECT_TRUE((*states)[1].again);
  EXPECT_THAT((*states)[1].reason, HasSubstr("no longer knows"));
}

TEST_F(Slurm, ATaskThatSlurmHasForgottenIsAskedForInTheAccounts) {
  const uint64_t id = *launcher_->start(job());
  say("scontrol", "", 1, "slurm_load_jobs error: Invalid job id specified\n");
  say("sacct", "41_0|NODE_FAIL|0:0|n1\n");
  EXPECT_EQ(first(id).phase, ASSAY_TASK_LOST);
  EXPECT_TRUE(first(id).again);
  EXPECT_EQ(calls("scontrol"), "-o show job 41\n") << "what has ended is not asked for again";
}

TEST_F(Slurm, CancelNamesIdsAndNothingElse) {
  const uint64_t id = *launcher_->start(job(3));
  EXPECT_TRUE(launcher_->cancel(id, 2).ok());
  EXPECT_TRUE(launcher_->cancel(id, std::nullopt).ok());
  EXPECT_EQ(calls("scancel"), "41_2\n41\n");
  EXPECT_EQ(launcher_->cancel(id + 1, std::nullopt).code(), StatusCode::kNotFound) << "somebody else's";
  EXPECT_EQ(launcher_->cancel(id, 3).code(), StatusCode::kNotFound);
  EXPECT_EQ(calls("scancel"), "41_2\n41\n");
  say("scancel", "", 1, "scancel: error: Kill job error on job id 41: Invalid job id specified\n");
  EXPECT_TRUE(launcher_->cancel(id, std::nullopt).ok()) << "over already";
  say("scancel", "", 1, "scancel: error: Kill job error on job id 41: Access/permission denied\n");
  EXPECT_THAT(launcher_->cancel(id, std::nullopt).message(), HasSubstr("permission denied"));
}

TEST_F(Slurm, ATaskThatWouldWaitForEverIsCancelled) {
  const uint64_t id = *launcher_->start(job(2));
  say("scontrol", "JobId=41 ArrayTaskId=0-1 JobState=PENDING Reason=PartitionTimeLimit Restarts=0 ExitCode=0:0\n");
  const State state = first(id);
  EXPECT_EQ(state.phase, ASSAY_TASK_LOST);
  EXPECT_FALSE(state.again);
  EXPECT_THAT(state.reason, HasSubstr("PartitionTimeLimit"));
  EXPECT_EQ(calls("scancel"), "41_0\n41_1\n");
}

TEST_F(Slurm, ClosingCancelsWhatIsNotOver) {
  const uint64_t over = *launcher_->start(job());
  say("scontrol", "JobId=41 ArrayTaskId=0 JobState=COMPLETED Reason=None Restarts=0 ExitCode=0:0 BatchHost=n2\n");
  EXPECT_EQ(first(over).phase, ASSAY_TASK_EXITED);
  say("sbatch", "52\n");
  ASSERT_TRUE(launcher_->start(job()).ok());
  launcher_.reset();
  EXPECT_EQ(calls("scancel"), "--quiet 52\n");
}

TEST_F(Slurm, ClosingCancelsJobsWhoseSubmissionGotNoAnswerAndNothingElse) {
  ASSERT_TRUE(launcher_->start(job()).ok());
  say("scontrol", "JobId=41 ArrayTaskId=0 JobState=COMPLETED Reason=None Restarts=0 ExitCode=0:0 BatchHost=n2\n");
  EXPECT_EQ(first(41).phase, ASSAY_TASK_EXITED);
  say("sbatch", "", 1, "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation\n");
  for (const char* name : {"assay-x-1", "assay-x-2"}) {
    Job unanswered = job();
    unanswered.name = name;
    EXPECT_EQ(launcher_->start(unanswered).status().code(), StatusCode::kExhausted);
  }
  say("sbatch", "Submitted\n");
  Job mute = job();
  mute.name = "assay-x-3";
  EXPECT_EQ(launcher_->start(mute).status().code(), StatusCode::kInfra) << "an answer without an id";
  say("squeue", "78\n77\n78\n");
  EXPECT_EQ(calls("squeue"), "");
  launcher_.reset();
  for (const char* name : {"assay-x-1", "assay-x-2", "assay-x-3"}) {
    EXPECT_THAT(calls("squeue"),
                HasSubstr("--name=" + std::string(name) + " --user=" + std::to_string(::geteuid()) + " "));
  }
  EXPECT_THAT(calls("squeue"), ::testing::Not(HasSubstr("assay-x-0")));
  EXPECT_EQ(calls("scancel"), "--quiet 77 78\n");
}

TEST_F(Slurm, ClosingCancelsNothingWhereNothingIsFound) {
  say("sbatch", "", 1, "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation\n");
  EXPECT_EQ(launcher_->start(job()).status().code(), StatusCode::kExhausted);
  say("squeue", "");
  launcher_.reset();
  EXPECT_EQ(calls("scancel"), "");
}

TEST_F(Slurm, AJobIsNeverTakenForAnother) {
  say("sbatch", "", 1, "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation\n");
  EXPECT_EQ(launcher_->start(job()).status().code(), StatusCode::kExhausted);
  say("squeue", "77\n");
  say("sbatch", "78\n");
  Job other = job();
  other.name = "assay-x-1";
  EXPECT_EQ(*launcher_->start(other), 78u);
  EXPECT_EQ(*launcher_->start(job()), 77u);
}

TEST_F(Slurm, ACommandThatHangsIsEnded) {
  std::ofstream(dir_ / "scontrol.sleep") << 60;
  nlohmann::json options = nlohmann::json::parse(options_);
  options["command_seconds"] = 0.3;
  options_ = options.dump();
  open();
  const uint64_t id = *launcher_->start(job());
  EXPECT_THAT(launcher_->poll(id).status().message(), HasSubstr("no answer in time"));
}

// What a site's Slurm allows is asked for; ids are given one after the other.
class SmallArrays : public Slurm {
 protected:
  void SetUp() override {
    Slurm::SetUp();
    std::ofstream(dir_ / "scontrol.config") << "Configuration data as of 2026-11-30\nMaxArrayTasks = 7\n"
                                               "MaxArraySize            = 4\nMaxJobCount             = 10000\n";
    give_ids(60, 100);
  }
  void give_ids(int from, int to) {
    std::ofstream(dir_ / "sbatch.next") << from << "\n";
    std::ofstream(dir_ / "sbatch.end") << to << "\n";
  }
  std::string script(const std::string& name) const {
    std::ifstream file(dir_ / "launcher" / (name + ".sh"));
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::string submission(const std::string& name, const std::string& more = "") const {
    return "--parsable " + more + (dir_ / "launcher" / (name + ".sh")).string() + "\n";
  }
  int times_submitted(const std::string& name) const {
    const std::string all = calls("sbatch");
    const std::string one = submission(name);
    int times = 0;
    for (size_t at = all.find(one); at != std::string::npos; at = all.find(one, at + 1)) ++times;
    return times;
  }
  // Arrays get ids from 60 on; those after `last` get these words.
  void take_no_more_than(int last, const std::string& words) {
    give_ids(60, last + 1);
    say("sbatch", "", 1, "sbatch: error: Batch job submission failed: " + words + "\n");
    say("squeue", "");
  }
  // For a minute at most. Between two tries there is a pause.
  std::vector<State> poll_until_submitted(uint64_t id, size_t task) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    Result<std::vector<State>> states = launcher_->poll(id);
    while ((!states || (*states)[task].phase == ASSAY_TASK_WAITING) && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      states = launcher_->poll(id);
    }
    EXPECT_TRUE(states.ok()) << states.status().message();
    return states ? *std::move(states) : std::vector<State>(task + 1);
  }

  const std::string kLimit = "Job violates AssocMaxSubmitJobLimit";
  const std::string kRunning =
      "JobId=41 ArrayTaskId=0-2 JobState=RUNNING Reason=None Restarts=0 ExitCode=0:0 BatchHost=n2\n";
};

TEST_F(SmallArrays, AJobOfMoreTasksBecomesSeveralArrays) {
  Job made = job(9);
  for (size_t i = 0; i < 9; ++i) made.tasks[i].argv = {"/bin/task", std::to_string(i)};
  const Result<uint64_t> id = launcher_->start(made);
  ASSERT_TRUE(id.ok()) << id.status().message();
  EXPECT_EQ(*id, 60u);
  EXPECT_EQ(calls("sbatch"), submission("assay-x-0.p0") + submission("assay-x-0.p1") + submission("assay-x-0.p2"));
  EXPECT_EQ(calls("scontrol"), "show config\n");
  for (int part = 0; part < 3; ++part) {
    const std::string name = "assay-x-0.p" + std::to_string(part);
    EXPECT_THAT(script(name), AllOf(HasSubstr("--array=0-2\n"), HasSubstr("--job-name=" + name + "\n"),
                                    HasSubstr("'/bin/task' '" + std::to_string(3 * part) + "' ;;"),
                                    HasSubstr("'/bin/task' '" + std::to_string(3 * part + 2) + "' ;;")));
  }
  // Every array is asked for; their tasks stand one after the other.
  say("scontrol", "JobId=41 ArrayTaskId=0-2 JobState=RUNNING Reason=None Restarts=0 ExitCode=0:0 BatchHost=n2\n");
  Result<std::vector<State>> states = launcher_->poll(*id);
  ASSERT_TRUE(states.ok()) << states.status().message();
  EXPECT_EQ(states->size(), 9u);
  for (const State& state : *states) EXPECT_EQ(state.phase, ASSAY_TASK_RUNNING);
  say("scontrol", "", 1, "slurm_load_jobs error: Invalid job id specified\n");
  std::ofstream(dir_ / "launcher/assay-x-0.p1.1.end") << "3\n";
  states = launcher_->poll(*id);
  ASSERT_TRUE(states.ok()) << states.status().message();
  EXPECT_EQ((*states)[4].exit_code, 3) << "task 1 of the second array";
  EXPECT_EQ((*states)[3].phase, ASSAY_TASK_LOST);
}

TEST_F(SmallArrays, AJobThatFitsStaysOneAndOneTaskAsksNothing) {
  ASSERT_TRUE(launcher_->start(job(1)).ok());
  EXPECT_EQ(calls("scontrol"), "");
  Job four = job(4);
  four.name = "assay-x-1";
  ASSERT_TRUE(launcher_->start(four).ok());
  EXPECT_THAT(script("assay-x-1"), HasSubstr("--array=0-3\n"));
  Job again = four;
  again.name = "assay-x-2";
  ASSERT_TRUE(launcher_->start(again).ok());
  EXPECT_EQ(calls("scontrol"), "show config\n") << "once a run";
}

TEST_F(SmallArrays, TogetherTheyRunNoMoreAtOnceThanTheJobMay) {
  Job made = job(9);
  made.most_at_once = 5;
  ASSERT_TRUE(launcher_->start(made).ok());
  EXPECT_THAT(script("assay-x-0.p0"), HasSubstr("--array=0-2%2\n"));
  EXPECT_THAT(script("assay-x-0.p1"), HasSubstr("--array=0-2%2\n"));
  EXPECT_THAT(script("assay-x-0.p2"), HasSubstr("--array=0-2%1\n"));
  made.name = "assay-x-1";
  made.most_at_once = 2;
  ASSERT_TRUE(launcher_->start(made).ok());  // ids 63, 64, 65
  for (const char* name : {"assay-x-1.p0", "assay-x-1.p1", "assay-x-1.p2"}) {
    EXPECT_THAT(script(name), HasSubstr("--array=0-2%1\n"));
  }
  EXPECT_THAT(calls("sbatch"),
              HasSubstr(submission("assay-x-1.p1") + submission("assay-x-1.p2", "--dependency=afterany:63 ")));
}

TEST_F(SmallArrays, CancelNamesTheArrayAndTheTaskInIt) {
  const uint64_t id = *launcher_->start(job(9));
  EXPECT_TRUE(launcher_->cancel(id, 2).ok());
  EXPECT_TRUE(launcher_->cancel(id, 3).ok());
  EXPECT_TRUE(launcher_->cancel(id, 8).ok());
  EXPECT_EQ(launcher_->cancel(id, 9).code(), StatusCode::kNotFound);
  EXPECT_EQ(launcher_->cancel(61, 0).code(), StatusCode::kNotFound) << "a part is no job of its own";
  EXPECT_TRUE(launcher_->cancel(id, std::nullopt).ok());
  EXPECT_EQ(calls("scancel"), "60_2\n61_0\n62_2\n60 61 62\n");
}

TEST_F(SmallArrays, TheJobRunsWithItsFirstArrayAndTheOthersFollowWhenSlurmTakesThem) {
  take_no_more_than(60, kLimit);
  ASSERT_EQ(*launcher_->start(job(9)), 60u);
  say("scontrol", kRunning);
  Result<std::vector<State>> states = launcher_->poll(60);
  ASSERT_TRUE(states.ok()) << states.status().message();
  for (size_t i = 0; i < 9; ++i) EXPECT_EQ((*states)[i].phase, i < 3 ? ASSAY_TASK_RUNNING : ASSAY_TASK_WAITING) << i;
  EXPECT_THAT((*states)[3].reason, HasSubstr("AssocMaxSubmitJobLimit"));
  EXPECT_EQ((*states)[4].reason, "") << "it is told once";
  give_ids(70, 100);
  for (const State& state : poll_until_submitted(60, 8)) EXPECT_EQ(state.phase, ASSAY_TASK_RUNNING) << state.reason;
  const std::string one = submission("assay-x-0.p1");
  EXPECT_THAT(calls("sbatch"),
              AllOf(StartsWith(submission("assay-x-0.p0") + one), EndsWith("\n" + one + submission("assay-x-0.p2"))));
  EXPECT_EQ(times_submitted("assay-x-0.p0"), 1);
  EXPECT_EQ(times_submitted("assay-x-0.p2"), 1);
  launcher_.reset();
  EXPECT_EQ(calls("scancel"), "--quiet 60 70 71\n");
}

TEST_F(SmallArrays, AnArrayWhoseSubmissionGotNoAnswerIsFoundAndNotSubmittedTwice) {
  take_no_more_than(60, "Socket timed out on send/recv operation");
  ASSERT_EQ(*launcher_->start(job(6)), 60u);
  say("scontrol", kRunning);
  say("squeue", "88\n");
  for (const State& state : poll_until_submitted(60, 5)) EXPECT_EQ(state.phase, ASSAY_TASK_RUNNING) << state.reason;
  EXPECT_EQ(times_submitted("assay-x-0.p1"), 1);
  launcher_.reset();
  EXPECT_EQ(calls("scancel"), "--quiet 60 88\n");
}

TEST_F(SmallArrays, ClosingCancelsWhatThereIsOfAJobThatIsNotWhole) {
  take_no_more_than(60, "Socket timed out on send/recv operation");
  ASSERT_EQ(*launcher_->start(job(9)), 60u);
  say("squeue", "88\n");
  launcher_.reset();
  EXPECT_EQ(calls("scancel"), "--quiet 60 88\n");
}

TEST_F(SmallArrays, ARefusedArrayIsLostWithThoseAfterItAndTheOthersGoOn) {
  take_no_more_than(61, "Invalid account");
  ASSERT_EQ(*launcher_->start(job(16)), 60u);  // 4 arrays of 4
  say("scontrol", "JobId=41 ArrayTaskId=0-3 JobState=RUNNING Reason=None Restarts=0 ExitCode=0:0 BatchHost=n2\n");
  for (int i = 0; i < 2; ++i) {
    const Result<std::vector<State>> states = launcher_->poll(60);
    ASSERT_TRUE(states.ok()) << states.status().message();
    for (size_t task = 0; task < 16; ++task) {
      const State& state = (*states)[task];
      EXPECT_EQ(state.phase, task < 8 ? ASSAY_TASK_RUNNING : ASSAY_TASK_LOST) << task;
      EXPECT_FALSE(state.again);
      EXPECT_THAT(state.reason, HasSubstr(task < 8 ? "" : "Invalid account"));
    }
  }
  EXPECT_EQ(times_submitted("assay-x-0.p2"), 1) << "no second try";
  EXPECT_EQ(times_submitted("assay-x-0.p3"), 0);
  EXPECT_EQ(calls("scancel"), "");
  launcher_.reset();
  EXPECT_EQ(calls("scancel"), "--quiet 60 61\n");
}

TEST_F(SmallArrays, WithNothingLeftOfTheJobPollSaysThatTheRestIsNotTaken) {
  take_no_more_than(60, kLimit);
  ASSERT_EQ(*launcher_->start(job(6)), 60u);
  say("scontrol", "JobId=41 ArrayTaskId=0-2 JobState=COMPLETED Reason=None Restarts=0 ExitCode=0:0 BatchHost=n2\n");
  const Result<std::vector<State>> states = launcher_->poll(60);
  ASSERT_TRUE(states.ok()) << "the ends are told first: " << states.status().message();
  EXPECT_EQ((*states)[0].phase, ASSAY_TASK_EXITED);
  const int tried = times_submitted("assay-x-0.p1");
  for (int i = 0; i < 2; ++i) {
    const Status status = launcher_->poll(60).status();
    EXPECT_EQ(status.code(), StatusCode::kExhausted);
    EXPECT_THAT(status.message(), HasSubstr("AssocMaxSubmitJobLimit"));
  }
  EXPECT_GT(times_submitted("assay-x-0.p1"), tried) << "once they are over, it is tried at once";
  give_ids(70, 100);
  for (const State& state : poll_until_submitted(60, 5)) EXPECT_EQ(state.phase, ASSAY_TASK_EXITED) << state.reason;
}

TEST_F(SmallArrays, WhatIsCancelledBeforeItIsSubmittedNeverRuns) {
  take_no_more_than(60, kLimit);
  ASSERT_EQ(*launcher_->start(job(9)), 60u);
  say("scontrol", kRunning);
  EXPECT_TRUE(launcher_->cancel(60, 4).ok());
  EXPECT_EQ(calls("scancel"), "");
  say("scancel", "", 1, "scancel: error: Unable to contact slurm controller\n");
  give_ids(70, 71);
  const std::vector<State> states = poll_until_submitted(60, 5);
  EXPECT_EQ(states[3].phase, ASSAY_TASK_RUNNING);
  EXPECT_EQ(states[4].phase, ASSAY_TASK_LOST);
  say("scancel", "");
  ASSERT_TRUE(launcher_->poll(60).ok());
  ASSERT_TRUE(launcher_->poll(60).ok());
  EXPECT_THAT(calls("scancel"), AllOf(StartsWith("70_1\n70_1\n"), EndsWith("70_1\n"))) << "until it is heard";
  const std::string heard = calls("scancel");
  EXPECT_TRUE(launcher_->cancel(60, std::nullopt).ok());
  EXPECT_EQ(calls("scancel"), heard + "60 70\n");
  give_ids(80, 100);
  const int tried = times_submitted("assay-x-0.p2");
  for (size_t task = 6; task < 9; ++task) EXPECT_EQ(launcher_->poll(60)->at(task).phase, ASSAY_TASK_LOST);
  EXPECT_EQ(times_submitted("assay-x-0.p2"), tried);
}

TEST_F(SmallArrays, ALimitThatCannotBeAskedForNowIsAskedForLater) {
  fs::remove(dir_ / "scontrol.config");
  say("scontrol", "", 1, "slurm_load_ctl_conf error: Unable to contact slurm controller (connect failure)\n");
  EXPECT_EQ(launcher_->start(job(9)).status().code(), StatusCode::kExhausted);
  EXPECT_EQ(calls("sbatch"), "");
  std::ofstream(dir_ / "scontrol.config") << "MaxArraySize = 9\n";
  EXPECT_EQ(*launcher_->start(job(9)), 60u);
  EXPECT_THAT(script("assay-x-0"), HasSubstr("--array=0-8\n"));
}

TEST_F(SmallArrays, ASlurmThatTakesNoArraysSaysSo) {
  std::ofstream(dir_ / "scontrol.config") << "MaxArraySize = 0\n";
  const Result<uint64_t> id = launcher_->start(job(2));
  EXPECT_EQ(id.status().code(), StatusCode::kInfra);
  EXPECT_THAT(id.status().message(), AllOf(HasSubstr("MaxArraySize is 0"), HasSubstr("launcher command")));
}

TEST_F(Slurm, AProgramThatIsMissingIsNamed) {
  fs::remove(dir_ / "sbatch");
  const Result<uint64_t> id = launcher_->start(job());
  EXPECT_FALSE(id.ok());
  EXPECT_NE(id.status().code(), StatusCode::kExhausted);
  EXPECT_THAT(id.status().message(), HasSubstr("sbatch"));
}

}  // namespace
}  // namespace assay::launchers
