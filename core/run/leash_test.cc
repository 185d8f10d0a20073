#include "core/run/leash.h"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <thread>

#include "core/command/process_table.h"
#include "core/run/event_file.h"
#include "tests/temporary_folder.h"

namespace assay::run {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

class LeashTest : public ::testing::Test {
 protected:
  void SetUp() override {
    plan_.run_id = "run";
    plan_.worker = "w000";
    plan_.heartbeat = dir_ / "heartbeat";
    plan_.heartbeat_seconds = 0.5;
  }
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
      auto started = Heartbeat::start(plan_.heartbeat, heart, 0, 50ms);
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

  const tests::TemporaryFolder folder_;
  const fs::path& dir_ = folder_.path();
  WorkerPlan plan_;
};

TEST_F(LeashTest, AWorkerWithoutSignsOfLifeEndsItself) {
  EXPECT_EQ(on_leash(100s), Leash::kOrphaned);
  const Result<std::string> text = read_file(dir_ / "events");
  ASSERT_TRUE(text.ok());
  EXPECT_THAT(*text, HasSubstr("worker_orphaned"));
}

TEST_F(LeashTest, WhatLeftItsParentsItsGroupAndItsSessionEndsWithTheWorker) {
  plan_.heartbeat_seconds = 3;  // until then the daemon has to be there
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
    std::this_thread::sleep_for(100s);
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

TEST_F(LeashTest, AHeartbeatKeepsItAlive) {
  plan_.heartbeat_seconds = 3;  // the heart may miss sixty beats
  EXPECT_EQ(on_leash(5s, "run"), -SIGKILL);
}

TEST_F(LeashTest, TheHeartbeatOfAnotherRunIsNone) { EXPECT_EQ(on_leash(100s, "another"), Leash::kOrphaned); }

TEST_F(LeashTest, ALaterSessionRefusesWhatStartsAndEndsWhatRuns) {
  plan_.heartbeat_seconds = 400;  // looked at every 2 s
  std::ofstream(plan_.heartbeat) << "run 0 17\n";
  const auto resumed = [&] {
    while (!fs::exists(dir_ / "events.claim")) std::this_thread::sleep_for(5ms);
    ASSERT_TRUE(write_file(plan_.heartbeat, "run 7 0\n").ok());
  };
  EXPECT_EQ(on_leash(100s, "", resumed), Leash::kOrphaned);
  EXPECT_FALSE(fs::exists(dir_ / "events")) << "the runner does not read them any more";
  EXPECT_EQ(Leash::tie(plan_, dir_ / "events").status().code(), StatusCode::kCancelled);
  plan_.worker = "w007";
  EXPECT_TRUE(Leash::tie(plan_, dir_ / "events").ok());
}

TEST_F(LeashTest, ARevocationIsNotUndoneByWhoeverClaimsAtTheSameTime) {
  const auto revoke = [&] {
    while (!fs::exists(dir_ / "events.claim")) std::this_thread::sleep_for(1ms);
    const Result<std::string> claim = read_file(dir_ / "events.claim");
    Leash::revoke(dir_ / "events");
    ASSERT_TRUE(write_file(dir_ / "events.claim", *claim).ok());  // the worker's own, written over what was there
  };
  EXPECT_EQ(on_leash(100s, "run", revoke), Leash::kOrphaned);
}

TEST_F(LeashTest, ARevokedClaimEndsItAndAllThatFollow) {
  const auto revoke = [&] {
    while (!fs::exists(dir_ / "events.claim")) std::this_thread::sleep_for(5ms);
    Leash::revoke(dir_ / "events");
  };
  EXPECT_EQ(on_leash(100s, "run", revoke), Leash::kOrphaned);
  EXPECT_EQ(Leash::tie(plan_, dir_ / "events").status().code(), StatusCode::kCancelled);
}

}  // namespace
}  // namespace assay::run
