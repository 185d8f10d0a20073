#include "core/command/command.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <charconv>
#include <fstream>
#include <thread>

#include "core/command/log_tail.h"
#include "core/command/proc_file.h"
#include "core/command/process_table.h"
#include "tests/temporary_folder.h"

namespace assay::command {
namespace {

using namespace std::chrono_literals;  // NOLINT: literals
using testing::HasSubstr;
using testing::IsEmpty;
namespace fs = std::filesystem;

const std::string kProgram = ASSAY_BINARY_DIR "/bin/misbehaving_program";

bool lives(pid_t pid) {
  ProcessTable table;
  table.read();
  for (size_t i = 0; i < table.size(); ++i) {
    if (table.pid(i) == pid) return !table.zombie(i);
  }
  return false;
}

pid_t parent_of(pid_t pid) {
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  std::string number, name, state;
  pid_t parent = 0;
  stat >> number >> name >> state >> parent;
  return parent;
}

class CommandRun : public testing::Test {
 protected:
  CommandOptions options(std::vector<std::string> words) const {
    words.insert(words.begin(), kProgram);
    return {.argv = std::move(words),
            .environment = {{"PATH", "/usr/bin:/bin"}},
            .output = folder_ / "stdout",
            .errors = folder_ / "stderr",
            .kill_grace = 100ms};
  }
  CommandEnd run(const CommandOptions& options) const {
    Result<CommandEnd> end = run_command(options);
    EXPECT_TRUE(end.ok()) << end.status().message();
    return end ? *end : CommandEnd();
  }
  std::string text(const std::string& name) const {
    std::ifstream in(folder_ / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::vector<pid_t> noted() const {
    std::vector<pid_t> pids;
    for (const auto& entry : fs::directory_iterator(folder_)) {
      if (entry.path().extension() == ".pid") pids.push_back(std::stoi(entry.path().stem()));
    }
    return pids;
  }
  std::vector<pid_t> living() const {
    std::vector<pid_t> pids = noted();
    std::erase_if(pids, [](pid_t pid) { return !lives(pid); });
    return pids;
  }
  void wait_for_noted(size_t count) const {
    for (int i = 0; i < 6000 && noted().size() < count; ++i) std::this_thread::sleep_for(10ms);
    ASSERT_GE(noted().size(), count);
  }

  // Runs it under a time limit that grows until `count` processes have noted that they are there: how long they need
  // for that is the machine's affair.
  CommandEnd run_past(size_t count, CommandOptions asked) const {
    for (asked.time_limit = 300ms;; asked.time_limit *= 2) {
      CommandEnd end = run(asked);
      if (noted().size() >= count || asked.time_limit > 60s) {
        EXPECT_EQ(end.text(), fmt::format("time limit of {:.1f} s reached", asked.time_limit / 1.0s));
        return end;
      }
      EXPECT_THAT(living(), IsEmpty());
      for (const pid_t pid : noted()) fs::remove(folder_ / (std::to_string(pid) + ".pid"));
    }
  }

  const tests::TemporaryFolder own_folder_;
  const fs::path folder_ = own_folder_.path();
};

TEST_F(CommandRun, KeepsBothOutputsApartAndTellsTheExitCode) {
  CommandEnd end = run(options({"complain", "a reason", "3"}));
  EXPECT_EQ(end.code, 3);
  EXPECT_EQ(end.text(), "exit code 3");
  EXPECT_FALSE(end.ok());
  EXPECT_EQ(text("stderr"), "a reason\n");
  EXPECT_EQ(text("stdout"), "");
  end = run(options({"say", "hello"}));
  EXPECT_TRUE(end.ok());
  EXPECT_EQ(text("stdout"), "hello");
  EXPECT_EQ(text("stderr"), "");
  EXPECT_GT(end.seconds, 0);
}

TEST_F(CommandRun, PassesWordsAsTheyAre) {
  run(options({"words", "a b", "", "$HOME", "*", "\"q'", "\n"}));
  EXPECT_EQ(text("stdout"), "[a b]\n[]\n[$HOME]\n[*]\n[\"q']\n[\n]\n");
}

TEST_F(CommandRun, GivesTheEnvironmentThatIsAskedForAndNoOther) {
  CommandOptions asked = options({"environment", "ASKED"});
  asked.environment["ASKED"] = "for";
  run(asked);
  EXPECT_EQ(text("stdout"), "for");
  ::setenv("NOT_ASKED", "x", 1);
  run(options({"environment", "NOT_ASKED"}));
  EXPECT_EQ(text("stdout"), "(unset)");
}

TEST_F(CommandRun, ReadsNothingOrTheFileThatIsNamed) {
  CommandOptions asked = options({"copy"});
  run(asked);
  EXPECT_EQ(text("stdout"), "");
  std::ofstream(folder_ / "in") << "some input";
  asked.input = folder_ / "in";
  run(asked);
  EXPECT_EQ(text("stdout"), "some input");
  asked.input = folder_ / "absent";
  EXPECT_EQ(run_command(asked).status().code(), StatusCode::kNotFound);
}

TEST_F(CommandRun, RunsInItsFolder) {
  CommandOptions asked = options({"folder"});
  asked.folder = "/usr";
  run(asked);
  EXPECT_EQ(text("stdout"), "/usr");
  asked.folder = folder_ / "absent";
  const Status failed = run_command(asked).status();
  EXPECT_EQ(failed.code(), StatusCode::kNotFound);
  EXPECT_THAT(failed.message(), HasSubstr("the working folder"));
}

TEST_F(CommandRun, OneFileMayHoldBothOutputs) {
  CommandOptions asked = options({});
  asked.argv = {"sh", "-c", "echo out; echo err >&2; echo out"};
  asked.errors = asked.output;
  EXPECT_TRUE(run(asked).ok());
  EXPECT_EQ(text("stdout"), "out\nerr\nout\n");
  asked.append = true;
  run(asked);
  EXPECT_EQ(text("stdout"), "out\nerr\nout\nout\nerr\nout\n");
}

TEST_F(CommandRun, TellsTheSignal) {
  const CommandEnd end = run(options({"die", "11"}));
  EXPECT_EQ(end.signal, SIGSEGV);
  EXPECT_EQ(end.text(), "SIGSEGV (Segmentation fault)");
}

TEST_F(CommandRun, SaysWhatCannotBeExecuted) {
  CommandOptions asked = options({});
  asked.argv = {"no_such_program_of_ours"};
  Status failed = run_command(asked).status();
  EXPECT_EQ(failed.code(), StatusCode::kNotFound);
  EXPECT_THAT(failed.message(), HasSubstr("command not found: 'no_such_program_of_ours' is in no folder of PATH"));
  asked.argv = {(folder_ / "absent").string()};
  EXPECT_EQ(run_command(asked).status().code(), StatusCode::kNotFound);
  std::ofstream(folder_ / "script") << "no program\n";
  asked.argv = {(folder_ / "script").string()};
  failed = run_command(asked).status();
  EXPECT_EQ(failed.code(), StatusCode::kInfra);
  EXPECT_THAT(failed.message(), HasSubstr("make it executable"));
  fs::permissions(folder_ / "script", fs::perms::owner_all);
  EXPECT_THAT(run_command(asked).status().message(), HasSubstr("has no #! line"));
  std::ofstream(folder_ / "script") << "#!/no/such/interpreter\n";
  failed = run_command(asked).status();
  EXPECT_EQ(failed.code(), StatusCode::kNotFound);
  EXPECT_THAT(failed.message(), HasSubstr("the interpreter in its first line"));
  asked.argv = {""};
  EXPECT_EQ(run_command(asked).status().code(), StatusCode::kInvalid);
  asked.argv = {};
  EXPECT_EQ(run_command(asked).status().code(), StatusCode::kInvalid);
}

TEST_F(CommandRun, EndsAtTheTimeLimit) {
  const CommandEnd end = run_past(1, options({"hang_deaf", folder_.string()}));
  EXPECT_EQ(end.limit, Limit::kTime);
  EXPECT_EQ(end.signal, SIGKILL);
  EXPECT_LT(end.seconds, 300) << "it hangs for 600";
  EXPECT_THAT(living(), IsEmpty());
}

TEST_F(CommandRun, AStoppedProgramEndsToo) {
  EXPECT_EQ(run_past(1, options({"stop_itself", folder_.string()})).limit, Limit::kTime);
  EXPECT_THAT(living(), IsEmpty());
}

TEST_F(CommandRun, EndsTheWholeFamilyWhereverItWent) {
  EXPECT_EQ(run_past(7, options({"family", folder_.string()})).limit, Limit::kTime);
  EXPECT_GE(noted().size(), 7U) << "the program, three children, three daemons";
  EXPECT_THAT(living(), IsEmpty());
}

TEST_F(CommandRun, EndsAndTellsWhatWasLeftBehind) {
  const CommandEnd end = run(options({"leave", folder_.string()}));
  EXPECT_EQ(end.leftovers, 2);
  EXPECT_TRUE(end.ok());
  EXPECT_EQ(end.text(), "exit code 0; 2 processes were left behind and were ended");
  EXPECT_EQ(noted().size(), 2U);
  EXPECT_THAT(living(), IsEmpty());
}

TEST_F(CommandRun, AChainOfForksComesToAnEnd) {
  CommandOptions asked = options({"chain"});
  asked.time_limit = 300ms;
  const CommandEnd end = run(asked);
  EXPECT_EQ(end.survivors, 0);
  EXPECT_LT(end.seconds, 30);
}

TEST_F(CommandRun, LimitsTheMemoryOfTheTree) {
  for (const char* way : {"eat", "eat_in_child"}) {
    CommandOptions asked = options({way, "300"});  // and stays
    asked.memory_limit = 100 << 20;
    const CommandEnd end = run(asked);
    EXPECT_EQ(end.limit, Limit::kMemory) << way;
    EXPECT_THAT(end.text(), HasSubstr("memory limit of 0.10 GB reached: "));
    EXPECT_GT(end.peak_memory, 100U << 20);
    EXPECT_LT(end.peak_memory, 400U << 20);
  }
}

TEST_F(CommandRun, PagesSharedSinceAForkCountOnce) {
  if (proc_kilobytes("/proc/self/smaps_rollup", "Pss_Anon") == 0) GTEST_SKIP() << "this kernel does not tell Pss_Anon";
  CommandOptions asked = options({"share", "60", folder_.string()});
  asked.memory_limit = 120 << 20;
  Result<Command> command = Command::start(asked);
  ASSERT_TRUE(command.ok()) << command.status().message();
  wait_for_noted(4);
  while (!command->wait(20ms) && command->memory() < 50U << 20) {
  }
  command->wait(300ms);  // the five are looked at some times more
  std::ofstream(folder_ / "go").flush();
  const CommandEnd end = command->wait();
  EXPECT_TRUE(end.ok()) << end.text();
  EXPECT_GT(end.peak_memory, 50U << 20);
}

TEST_F(CommandRun, LimitsWhatIsWritten) {
  for (const char* way : {"flood", "flood_errors"}) {
    CommandOptions asked = options({way});
    asked.output_limit = 1 << 20;
    const CommandEnd end = run(asked);
    EXPECT_EQ(end.limit, Limit::kOutput) << way;
    EXPECT_THAT(end.text(), HasSubstr("more than 1.0 MB were written to std"));
    EXPECT_LE(fs::file_size(folder_ / "stdout"), 1U << 20);
    EXPECT_LE(fs::file_size(folder_ / "stderr"), 1U << 20);
  }
}

TEST_F(CommandRun, MayCloseItsOutput) { EXPECT_TRUE(run(options({"close_output"})).ok()); }

TEST_F(CommandRun, IsCancelled) {
  CommandOptions asked = options({"family", folder_.string()});
  asked.cancelled = [this] { return noted().size() >= 7; };
  const CommandEnd end = run(asked);
  EXPECT_EQ(end.limit, Limit::kCancelled);
  EXPECT_EQ(end.text(), "cancelled");
  EXPECT_THAT(living(), IsEmpty());
}

TEST_F(CommandRun, StopsWhenToldTo) {
  Result<Command> command = Command::start(options({"hang", folder_.string()}));
  ASSERT_TRUE(command.ok()) << command.status().message();
  EXPECT_FALSE(command->poll().has_value());
  EXPECT_FALSE(command->wait(50ms).has_value());
  EXPECT_GT(command->pid(), 0);
  wait_for_noted(1);
  EXPECT_GT(command->wait(100ms) ? 0U : command->memory(), 0U);
  command->stop();
  const CommandEnd end = command->wait();
  EXPECT_EQ(end.limit, Limit::kStopped);
  EXPECT_EQ(end.signal, SIGTERM);
  EXPECT_EQ(command->poll()->signal, SIGTERM) << "the end stays known";
}

TEST_F(CommandRun, DestroyingItEndsTheTree) {
  {
    Result<Command> command = Command::start(options({"family", folder_.string()}));
    ASSERT_TRUE(command.ok());
    wait_for_noted(7);
    Command moved = *std::move(command);
  }
  EXPECT_THAT(living(), IsEmpty());
}

// What the program left behind hears no SIGTERM; the order to kill comes while it is seen to whether it ends by itself.
TEST_F(CommandRun, AnOrderToKillJustAfterTheProgramsEndIsHeard) {
  CommandOptions asked = options({"leave", folder_.string()});
  asked.kill_grace = 20s;
  Result<Command> command = Command::start(asked);
  ASSERT_TRUE(command.ok());
  wait_for_noted(2);
  while (lives(command->pid())) std::this_thread::sleep_for(1ms);
  std::this_thread::sleep_for(50ms);  // the guardian knows it now, and waits for the others for some time
  const auto begin = std::chrono::steady_clock::now();
  { const Command destroyed = *std::move(command); }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s);
  EXPECT_THAT(living(), IsEmpty());
}

std::atomic<pid_t> handlers_owner{0};  // NOLINT: a signal handler can reach nothing else
std::atomic<int> handlers_pipe{-1};    // NOLINT: likewise

// A handler of the caller's, for instance that of Ctrl-C, is for the caller alone to run.
TEST_F(CommandRun, NoOtherProcessRunsTheCallersSignalHandlers) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::setpgid(0, 0);
    handlers_owner = ::getpid();
    handlers_pipe = ends[1];
    ::signal(SIGUSR1, [](int) {
      if (::getpid() != handlers_owner) [[maybe_unused]]
        const ssize_t n = ::write(handlers_pipe, "x", 1);
    });
    const pid_t sender = ::fork();
    if (sender == 0) {
      ::signal(SIGUSR1, SIG_IGN);
      for (;;) ::kill(0, SIGUSR1);
    }
    int failed = 0;
    for (int i = 0; i < 60; ++i) failed += run_command(options({"exit", "0"})).ok() ? 0 : 1;
    ::kill(sender, SIGKILL);
    ::_exit(failed);
  }
  ::close(ends[1]);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  char byte = 0;
  EXPECT_EQ(::read(ends[0], &byte, 1), 0) << "a handler ran in another process";
  ::close(ends[0]);
}

TEST_F(CommandRun, TheDeathOfTheCallerEndsTheTree) {
  const pid_t caller = ::fork();
  if (caller == 0) {
    Result<Command> command = Command::start(options({"family", folder_.string()}));
    for (;;) ::pause();
  }
  wait_for_noted(7);
  ::kill(caller, SIGKILL);
  ::waitpid(caller, nullptr, 0);
  for (int i = 0; i < 300 && !living().empty(); ++i) std::this_thread::sleep_for(10ms);
  EXPECT_THAT(living(), IsEmpty());
}

TEST_F(CommandRun, TheDeathOfTheGuardianEndsTheTreeToo) {
  Result<Command> command = Command::start(options({"family", folder_.string()}));
  ASSERT_TRUE(command.ok());
  wait_for_noted(7);
  const pid_t guardian = parent_of(command->pid());
  ASSERT_GT(guardian, 1);
  ::kill(guardian, SIGKILL);
  const CommandEnd end = command->wait();
  EXPECT_EQ(end.text(), "its guardian process was killed, and the command with it");
  EXPECT_THAT(living(), IsEmpty());
}

TEST_F(CommandRun, TheDeathOfGuardianAndCallerAtOnceLeavesTheTreeToWhoMarkedTheCaller) {
  const std::string mark = new_mark();
  const pid_t caller = ::fork();
  if (caller == 0) {
    ::setenv(kMarkVariable, mark.c_str(), 1);
    Result<Command> command = Command::start(options({"family", folder_.string()}));
    std::ofstream(folder_ / "leader") << command->pid() << std::endl;
    for (;;) ::pause();
  }
  wait_for_noted(7);
  pid_t leader = 0;
  while (leader == 0) std::ifstream(folder_ / "leader") >> leader;
  const pid_t guardian = parent_of(leader);
  ASSERT_GT(guardian, 1);
  ::kill(guardian, SIGKILL);  // first: the caller does not look, and the guardian would notice the caller's end
  ::kill(caller, SIGKILL);
  ::waitpid(caller, nullptr, 0);
  EXPECT_FALSE(living().empty()) << "nobody ends them yet";
  end_marked(mark + "0");
  EXPECT_FALSE(living().empty()) << "another's mark";
  end_marked(mark);
  EXPECT_THAT(living(), IsEmpty());
}

TEST_F(CommandRun, ACommandThatStopsItsGuardianIsEndedByTheTimeLimit) {
  CommandOptions asked = options({});
  asked.argv = {"sh", "-c", "while :; do kill -STOP $PPID; sleep 0.01; done"};
  asked.time_limit = 300ms;
  const CommandEnd end = run(asked);
  EXPECT_EQ(end.text(), "time limit of 0.3 s reached");
  EXPECT_LT(end.seconds, 10);
}

TEST_F(CommandRun, ManyAtOnceFromManyThreads) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([this, t] {
      for (int i = 0; i < 5; ++i) {
        CommandOptions asked = options({"exit", std::to_string(t)});
        asked.output = asked.errors = folder_ / ("out" + std::to_string(t));
        const Result<CommandEnd> end = run_command(asked);
        ASSERT_TRUE(end.ok()) << end.status().message();
        EXPECT_EQ(end->text(), "exit code " + std::to_string(t));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace assay::command
