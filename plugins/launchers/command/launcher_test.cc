#include "plugins/launchers/command/launcher.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "assay/sdk.hpp"
#include "plugins/launchers/common/tool.h"
#include "tests/temporary_folder.h"

namespace assay::launchers {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using Json = nlohmann::json;

class Commands : public ::testing::Test {
 protected:
  void open(const Json& options) {
    const std::string text = options.dump();
    const std::string folder = dir_;
    auto config = sdk::sized<assay_launcher_config>();
    config.options = sdk::view(text);
    config.folder = sdk::view(folder);
    Result<std::unique_ptr<CommandLauncher>> opened = CommandLauncher::open(config);
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    launcher_ = *std::move(opened);
  }
  // A job whose tasks are run by a shell.
  Job job(const std::vector<std::string>& lines) {
    Job made;
    made.name = "job";
    for (const std::string& line : lines) made.tasks.push_back({{"/bin/sh", "-c", line}, (dir_ / "log").string()});
    return made;
  }
  std::vector<State> states(uint64_t id) {
    const Result<std::vector<State>> found = launcher_->poll(id);
    EXPECT_TRUE(found.ok()) << found.status().message();
    return found.ok() ? *found : std::vector<State>();
  }
  std::vector<State> at_end(uint64_t id) {
    const auto limit = std::chrono::steady_clock::now() + 100s;
    std::vector<State> found = states(id);
    while (std::chrono::steady_clock::now() < limit &&
           !std::all_of(found.begin(), found.end(), [](const State& state) { return state.over(); })) {
      std::this_thread::sleep_for(10ms);
      found = states(id);
    }
    return found;
  }
  void await(const std::string& file) const {
    for (int i = 0; i < 6000 && !fs::exists(dir_ / file); ++i) std::this_thread::sleep_for(10ms);
    EXPECT_TRUE(fs::exists(dir_ / file)) << file;
  }
  std::string text(const std::string& file) const {
    std::ifstream in(dir_ / file);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  // A program that takes a host and a script as ssh does.
  std::string fake_ssh(const std::string& body) {
    const fs::path file = dir_ / "ssh";
    EXPECT_TRUE(write_script(file, "#!/bin/sh\nhost=$1\nshift\n" + body + "\n").ok());
    return file;
  }

  const tests::TemporaryFolder folder_;
  const fs::path& dir_ = folder_.path();
  std::unique_ptr<CommandLauncher> launcher_;
};

TEST_F(Commands, TheProcessStandsForTheTask) {
  open({{"start", {"{argv}"}}});
  const auto ends = at_end(*launcher_->start(job({"exit 0", "exit 7", "kill -SEGV $$", "exit 255"})));
  EXPECT_EQ(ends[0].phase, ASSAY_TASK_EXITED);
  EXPECT_EQ(ends[0].exit_code, 0);
  EXPECT_EQ(ends[1].exit_code, 7);
  EXPECT_EQ(ends[2].signal, SIGSEGV);
  EXPECT_EQ(ends[3].phase, ASSAY_TASK_LOST);
  EXPECT_TRUE(ends[3].again);
}

TEST_F(Commands, AScriptCarriesEnvironmentAndLog) {
  open({{"start", {"sh", "-c", "exec \"$1\"", "-", "{script}"}}});
  Job made = job({"printf '%s' \"$SECRET_TOKEN\"; exit 4"});
  made.environment = {{"SECRET_TOKEN", "it's\n\"so\""}};
  const auto ends = at_end(*launcher_->start(made));
  EXPECT_EQ(ends[0].exit_code, 4);
  EXPECT_EQ(text("log"), "it's\n\"so\"");
  EXPECT_EQ(fs::status(dir_ / "job.0.sh").permissions(), fs::perms::owner_all);
}

TEST_F(Commands, HostsTakeTurnsAndOneThatIsDownIsLeftOut) {
  const std::string ssh = fake_ssh(
      "[ \"$host\" != down ] || { echo 'ssh: connect: No route to host' >&2; exit 255; }\n"
      "echo $host >>" +
      (dir_ / "hosts").string() + "\nexec \"$@\"");
  open({{"start", {ssh, "{host}", "{script}"}}, {"hosts", {"up:2", "down:1"}}, {"host_failures", 2}});
  const auto begin = std::chrono::steady_clock::now();
  const auto ends = at_end(*launcher_->start(job({"exit 0", "exit 0", "exit 0", "exit 0", "exit 0", "exit 0"})));
  int lost = 0;
  for (const State& state : ends) {
    if (state.phase == ASSAY_TASK_LOST) {
      ++lost;
      EXPECT_EQ(state.where, "down");
      EXPECT_THAT(state.reason, HasSubstr("No route to host"));
      EXPECT_TRUE(state.again);
    } else {
      EXPECT_EQ(state.where, "up");
    }
  }
  if (std::chrono::steady_clock::now() - begin < 1s) {
    EXPECT_EQ(lost, 1) << "then it rested for a second";
  } else {
    EXPECT_TRUE(lost == 1 || lost == 2) << lost << ": and got no more tasks";
  }
}

TEST_F(Commands, WithoutAHostThatWorksTheRestIsLost) {
  open({{"start", {"sh", "-c", "exit 255", "{script}"}}, {"hosts", {"a"}}, {"host_failures", 1}});
  const auto ends = at_end(*launcher_->start(job({"true", "true"})));
  EXPECT_TRUE(ends[0].again);
  EXPECT_FALSE(ends[1].again);
  EXPECT_THAT(ends[1].reason, HasSubstr("every host failed 1 times in a row (host_failures), at last a: the command"));
  EXPECT_EQ(launcher_->start(job({"true"})).status().code(), StatusCode::kInfra);
}

TEST_F(Commands, SlotsAndTheJobsLimitHoldTasksBack) {
  open({{"start", {"{argv}"}}, {"slots", 2}});
  const uint64_t id = *launcher_->start(job({"sleep 30", "sleep 30", "exit 0"}));
  std::this_thread::sleep_for(300ms);
  EXPECT_EQ(states(id)[2].phase, ASSAY_TASK_WAITING);
  EXPECT_TRUE(launcher_->cancel(id, 0).ok());
  for (int i = 0; i < 6000 && !states(id)[2].over(); ++i) std::this_thread::sleep_for(10ms);
  EXPECT_EQ(states(id)[2].phase, ASSAY_TASK_EXITED);
  Job one = job({"sleep 30", "exit 0"});
  one.most_at_once = 1;
  const uint64_t limited = *launcher_->start(one);
  std::this_thread::sleep_for(300ms);
  EXPECT_EQ(states(limited)[1].phase, ASSAY_TASK_WAITING);
}

TEST_F(Commands, CancelEndsTheTreeAndTellsSo) {
  open({{"start", {"{argv}"}}});
  const uint64_t id = *launcher_->start(
      job({"(sleep 31.4; touch " + (dir_ / "late").string() + ") & echo up >" + (dir_ / "up").string() + "; wait"}));
  await("up");
  EXPECT_TRUE(launcher_->cancel(id, std::nullopt).ok());
  const auto ends = at_end(id);
  EXPECT_EQ(ends[0].phase, ASSAY_TASK_LOST);
  EXPECT_FALSE(ends[0].again);
}

TEST_F(Commands, ATimeLimitIsALoss) {
  open({{"start", {"{argv}"}}});
  Job made = job({"sleep 30"});
  made.seconds = 0.3;
  const auto ends = at_end(*launcher_->start(made));
  EXPECT_EQ(ends[0].phase, ASSAY_TASK_LOST);
  EXPECT_THAT(ends[0].reason, HasSubstr("time limit"));
}

// Its far end may go on where the process that stands for it ended.
TEST_F(Commands, CancelIsRunForATaskThatIsLostOrPassesItsTime) {
  const Json cancel = {"sh", "-c", "echo {name} {index} >>" + (dir_ / "cancelled").string()};
  open({{"start", {"{argv}"}}, {"cancel", cancel}});
  const auto ends = at_end(*launcher_->start(job({"exit 3", "exit 255"})));
  EXPECT_EQ(ends[0].exit_code, 3);
  EXPECT_TRUE(ends[1].again);
  EXPECT_THAT(ends[1].reason, HasSubstr("exit code 255"));
  Job slow = job({"sleep 300"});
  slow.name = "slow";
  slow.seconds = 1;
  const auto late = at_end(*launcher_->start(slow));
  EXPECT_FALSE(late[0].again);
  EXPECT_THAT(late[0].reason, HasSubstr("time limit of 1 s reached"));
  launcher_.reset();
  EXPECT_EQ(text("cancelled"), "job 1\nslow 0\n");
}

TEST_F(Commands, WhatTheProcessSaysAsItFailsIsTheReason) {
  open({{"start", {"sh", "-c", "echo first >&2; echo 'forbidden by admission webhook' >&2; exit 1", "{argv}"}}});
  const auto ends = at_end(*launcher_->start(job({"true"})));
  EXPECT_EQ(ends[0].exit_code, 1);
  EXPECT_EQ(ends[0].reason, "forbidden by admission webhook");
}

TEST_F(Commands, WithAPollTheTaskHasAnIdOfItsOwn) {
  const std::string state = dir_ / "state";
  open({{"start", {"sh", "-c", "echo submitted; echo task-{index}", "{script}"}},
        {"poll", {"sh", "-c", "echo {id} >>" + (dir_ / "polled").string() + "; cat " + state}},
        {"cancel", {"sh", "-c", "echo {id} >" + (dir_ / "cancelled").string()}}});
  std::ofstream(state) << "running\n";
  const uint64_t id = *launcher_->start(job({"true"}));
  await("polled");
  EXPECT_EQ(states(id)[0].phase, ASSAY_TASK_RUNNING);
  std::ofstream(state) << "exited 3\n";
  EXPECT_EQ(at_end(id)[0].exit_code, 3);
  std::ofstream(state) << "running\n";
  const uint64_t second = *launcher_->start(job({"true"}));
  for (int i = 0; i < 6000 && text("polled").size() < 22; ++i) std::this_thread::sleep_for(10ms);
  EXPECT_TRUE(launcher_->cancel(second, std::nullopt).ok());
  await("cancelled");
  EXPECT_EQ(at_end(second)[0].phase, ASSAY_TASK_LOST);
}

// Whoever polls has lost the number, and what is not known is no success.
TEST_F(Commands, ATaskThatExitedWithoutANumberIsNotOver) {
  for (const char* said : {"exited", "exited well", "exited 0x", "exited 99999999999"}) {
    const std::string polled = (dir_ / "polled").string();
    open({{"start", {"sh", "-c", "echo task-{index}", "{script}"}},
          {"poll", {"sh", "-c", "echo '" + std::string(said) + "'; echo >>" + polled}},
          {"cancel", {"true"}}});
    const uint64_t id = *launcher_->start(job({"true"}));
    await("polled");
    for (int i = 0; i < 6000 && states(id)[0].reason.empty() && !states(id)[0].over(); ++i) {
      std::this_thread::sleep_for(10ms);
    }
    EXPECT_EQ(states(id)[0].phase, ASSAY_TASK_RUNNING) << said;
    EXPECT_THAT(states(id)[0].reason, AllOf(HasSubstr("poll said 'exited"), HasSubstr("expected exited and a number")));
    EXPECT_TRUE(launcher_->cancel(id, std::nullopt).ok());
    at_end(id);
    std::filesystem::remove(polled);
  }
}

TEST_F(Commands, ATaskThatWaitsSaysSoAndItsTimeBeginsWhenItRuns) {
  const std::string state = dir_ / "state";
  open({{"start", {"sh", "-c", "echo task-1", "{script}"}},
        {"poll", {"sh", "-c", "echo x >>" + (dir_ / "polled").string() + "; cat " + state}},
        {"cancel", {"sh", "-c", "echo {id} >" + (dir_ / "cancelled").string()}}});
  std::ofstream(state) << "waiting\n";
  Job made = job({"true"});
  made.seconds = 6;  // the first answer has to come within it
  const uint64_t id = *launcher_->start(made);
  const auto wait_for = [&](assay_task_phase phase) {
    for (int i = 0; i < 6000 && states(id)[0].phase != phase; ++i) std::this_thread::sleep_for(10ms);
    EXPECT_EQ(states(id)[0].phase, phase) << states(id)[0].reason;
  };
  await("polled");
  wait_for(ASSAY_TASK_WAITING);
  std::this_thread::sleep_for(7s);
  EXPECT_EQ(states(id)[0].phase, ASSAY_TASK_WAITING) << "longer than its limit";
  std::ofstream(state) << "running\n";
  wait_for(ASSAY_TASK_LOST);
  EXPECT_THAT(states(id)[0].reason, HasSubstr("time limit"));
  EXPECT_EQ(text("cancelled"), "task-1\n");
}

// Nobody knows its id yet when the launcher is closed.
TEST_F(Commands, AStartInFlightIsWaitedForAndWhatItStartedIsCancelled) {
  open({{"start", {"sh", "-c", "touch " + (dir_ / "begun").string() + "; sleep 1; echo task-7", "{script}"}},
        {"poll", {"echo", "running"}},
        {"cancel", {"sh", "-c", "echo {id} >>" + (dir_ / "cancelled").string()}}});
  ASSERT_TRUE(launcher_->start(job({"true"})).ok());
  await("begun");
  launcher_.reset();
  EXPECT_EQ(text("cancelled"), "task-7\n");
}

TEST_F(Commands, AStartThatPassesItsTimeAfterItToldAnIdIsCancelled) {
  open({{"start", {"sh", "-c", "echo task-8; exec sleep 30", "{script}"}},
        {"poll", {"echo", "running"}},
        {"cancel", {"sh", "-c", "echo {id} >>" + (dir_ / "cancelled").string()}},
        {"command_seconds", 3}});
  const auto ends = at_end(*launcher_->start(job({"true"})));
  EXPECT_EQ(text("cancelled"), "task-8\n");
  EXPECT_THAT(ends[0].reason, HasSubstr("start failed: time limit"));
}

// Whatever command hangs: whoever asks is answered, and other tasks go on.
TEST_F(Commands, ACommandThatHangsHoldsNobodyUp) {
  const std::string hangs = "touch " + (dir_ / "asked").string() + "; exec sleep 300";
  open({{"start", {"sh", "-c", "echo task-{index}", "{script}"}},
        {"poll", {"sh", "-c", "if [ {id} = task-0 ]; then " + hangs + "; fi; echo exited 5"}},
        {"cancel", {"sh", "-c", "echo {id} >>" + (dir_ / "cancelled").string()}}});
  const uint64_t id = *launcher_->start(job({"true", "true"}));
  await("asked");
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 6000 && !states(id)[1].over(); ++i) std::this_thread::sleep_for(10ms);
  EXPECT_EQ(states(id)[1].exit_code, 5);
  EXPECT_TRUE(launcher_->cancel(id, std::nullopt).ok());
  EXPECT_EQ(at_end(id)[0].phase, ASSAY_TASK_LOST);
  EXPECT_EQ(text("cancelled"), "task-0\n");
  launcher_.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 50s) << "a command may take 60 s";
}

TEST_F(Commands, ACancelThatFailsIsTold) {
  open({{"start", {"sh", "-c", "echo task-1; touch " + (dir_ / "told").string(), "{script}"}},
        {"poll", {"echo", "running"}},
        {"cancel", {"sh", "-c", "echo 'no such pod' >&2; exit 1"}}});
  const uint64_t id = *launcher_->start(job({"true"}));
  await("told");
  EXPECT_TRUE(launcher_->cancel(id, std::nullopt).ok());
  EXPECT_THAT(at_end(id)[0].reason, HasSubstr("cancelled; the command cancel failed: no such pod"));
}

TEST_F(Commands, MessagesHaveNoPartOfASecret) {
  open({{"start", {"sh", "-c", "printf '%0290d %s\\n' 0 \"$MY_TOKEN and more\" >&2; exit 255", "{script}"}}});
  Job made = job({"true"});
  made.environment = {{"MY_TOKEN", "k1k2k3k4k5k6k7k8"}};
  EXPECT_THAT(at_end(*launcher_->start(made))[0].reason,
              ::testing::AllOf(HasSubstr("*** and more"), ::testing::Not(HasSubstr("k8"))));
}

TEST_F(Commands, AProgramThatIsMissingIsALossWithItsName) {
  open({{"start", {"no_such_program_of_tests", "{argv}"}}});
  const auto ends = at_end(*launcher_->start(job({"true"})));
  EXPECT_EQ(ends[0].phase, ASSAY_TASK_LOST);
  EXPECT_FALSE(ends[0].again);
  EXPECT_THAT(ends[0].reason, HasSubstr("no_such_program_of_tests"));
}

}  // namespace
}  // namespace assay::launchers
