#include "core/run/process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <thread>

#include "core/run/event_file.h"
#include "tests/temporary_folder.h"

namespace assay::run {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class ProcessTest : public ::testing::Test {
 protected:
  Result<Process> shell(const std::string& script) {
    return Process::spawn(
        {.argv = {"/bin/sh", "-c", script}, .environment = {{"GREETING", "hallo"}}, .log = dir_ / "log"});
  }
  static Exit wait(Process& process) {
    for (int i = 0; i < 2000; ++i) {
      if (const std::optional<Exit> exit = process.poll()) return *exit;
      wait_any({process.pid()}, 5);
    }
    ADD_FAILURE() << "the process did not end";
    return {};
  }
  // True while a process of this number exists and is no zombie.
  static bool alive(pid_t pid) {
    const Result<std::string> stat = read_file("/proc/" + std::to_string(pid) + "/stat");
    return stat.ok() && stat->find(") Z ") == std::string::npos;
  }
  static bool dies(pid_t pid) {
    for (int i = 0; i < 400 && alive(pid); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return !alive(pid);
  }

  const tests::TemporaryFolder own_folder_;
  const fs::path dir_ = own_folder_.path();
};

TEST_F(ProcessTest, HasTheGivenEnvironmentAndAnEmptyStdin) {
  Result<Process> process = shell("echo \"$GREETING ${PATH:-no path}\"; cat; echo gone >&2; exit 3");
  ASSERT_TRUE(process.ok()) << process.status().message();
  const Exit exit = wait(*process);
  EXPECT_EQ(exit.code, 3);
  EXPECT_EQ(exit.text(), "exit code 3");
  EXPECT_THAT(*read_file(dir_ / "log"), HasSubstr("hallo"));
  EXPECT_THAT(*read_file(dir_ / "log"), HasSubstr("gone\n"));
}

TEST_F(ProcessTest, DeathBySignalIsNamed) {
  Result<Process> process = shell("kill -SEGV $$");
  ASSERT_TRUE(process.ok());
  const Exit exit = wait(*process);
  EXPECT_EQ(exit.signal, SIGSEGV);
  EXPECT_THAT(exit.text(), HasSubstr("SIGSEGV"));
}

TEST_F(ProcessTest, MissingProgramIsAnErrorAtOnce) {
  const Result<Process> process =
      Process::spawn({.argv = {"/nowhere/assay-worker"}, .environment = {}, .log = dir_ / "log"});
  ASSERT_FALSE(process.ok());
  EXPECT_EQ(process.status().code(), StatusCode::kInfra);
  EXPECT_THAT(process.status().message(), HasSubstr("/nowhere/assay-worker: cannot be executed: No such file"));
}

TEST_F(ProcessTest, ChildrenThatOutliveTheirLeaderAreKilled) {
  Result<Process> process = shell("sleep 600 & echo $! > " + (dir_ / "pid").string());
  ASSERT_TRUE(process.ok());
  EXPECT_EQ(wait(*process).code, 0);
  EXPECT_TRUE(dies(std::stoi(*read_file(dir_ / "pid"))));
}

TEST_F(ProcessTest, ChildrenThatLeftTheirParentsAndTheirSessionAreKilled) {
  const std::string pid = (dir_ / "pid").string();
  const std::string daemon =
      "(setsid sh -c 'echo $$ > " + pid + "; exec sleep 600' &); until [ -s " + pid + " ]; do :; done";
  {
    Result<Process> process = shell(daemon);
    ASSERT_TRUE(process.ok());
    EXPECT_EQ(wait(*process).code, 0);
    EXPECT_TRUE(dies(std::stoi(*read_file(pid))));
  }
  fs::remove(pid);
  {
    Result<Process> process = shell(daemon + "; sleep 600");
    ASSERT_TRUE(process.ok());
    for (int i = 0; i < 400 && (!fs::exists(pid) || fs::file_size(pid) == 0); ++i) wait_any({}, 5);
  }
  EXPECT_TRUE(dies(std::stoi(*read_file(pid))));
}

TEST_F(ProcessTest, DestructionKillsTheWholeGroup) {
  pid_t leader = 0;
  {
    Result<Process> process = shell("sleep 600 & echo $! > " + (dir_ / "pid").string() + "; wait");
    ASSERT_TRUE(process.ok());
    leader = process->pid();
    for (int i = 0; i < 400 && (!fs::exists(dir_ / "pid") || fs::file_size(dir_ / "pid") == 0); ++i) wait_any({}, 5);
  }
  EXPECT_TRUE(dies(leader));
  EXPECT_TRUE(dies(std::stoi(*read_file(dir_ / "pid"))));
}

TEST_F(ProcessTest, DiesWithTheProcessThatStartedIt) {
  const pid_t parent = ::fork();
  if (parent == 0) {
    Result<Process> process = shell("echo $$ > " + (dir_ / "pid").string() + "; exec sleep 600");
    while (!fs::exists(dir_ / "pid") || fs::file_size(dir_ / "pid") == 0) wait_any({}, 5);
    ::kill(::getpid(), SIGKILL);
  }
  ::waitpid(parent, nullptr, 0);
  EXPECT_TRUE(dies(std::stoi(*read_file(dir_ / "pid"))));
}

TEST_F(ProcessTest, AnonymousMemoryOfALivingProcessIsKnown) {
  Result<Process> process = shell("exec sleep 600");
  ASSERT_TRUE(process.ok());
  for (int i = 0; i < 400 && process->anonymous_bytes() == 0; ++i) wait_any({}, 5);
  EXPECT_GT(process->anonymous_bytes(), 0u);
  EXPECT_LT(process->anonymous_bytes(), 100u << 20);
}

}  // namespace
}  // namespace assay::run
