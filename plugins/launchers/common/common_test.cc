#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "assay/sdk.hpp"
#include "plugins/launchers/common/job.h"
#include "plugins/launchers/common/tool.h"
#include "tests/temporary_folder.h"

namespace assay::launchers {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using namespace std::chrono_literals;

const std::filesystem::path kFolder = ::testing::TempDir();  // tools name their files by the process

TEST(ShellQuoting, AShellReadsEveryWordBackAsItWas) {
  const std::vector<std::string> words = {"plain", "two words", "it's", "\"double\"", "new\nline", "$HOME `id` \\",
                                          "*",     "",          "-n",   "a'b'c",      "tab\there", "\xc3\xa9 %s"};
  std::vector<std::string> argv = {"/bin/sh", "-c", "printf '%s|' " + shell_quoted(words)};
  const Result<ToolOutput> output = run_tool(argv, 10s, kFolder);
  ASSERT_TRUE(output.ok()) << output.status().message();
  std::string expected;
  for (const std::string& word : words) expected += word + "|";
  EXPECT_EQ(output->out, expected);
}

TEST(ShellQuoting, ExportedValuesArriveAsTheyWere) {
  Job job;
  job.environment = {{"A", "it's \"one\"\nand $two"}, {"B", ""}};
  const Result<ToolOutput> output =
      run_tool({"/bin/sh", "-c", export_lines(job) + "printf '%s|%s' \"$A\" \"$B\""}, 10s, kFolder);
  ASSERT_TRUE(output.ok());
  EXPECT_EQ(output->out, "it's \"one\"\nand $two|");
}

TEST(Tool, SaysWhatItSaidAndIsEndedAtItsTimeLimit) {
  const Result<ToolOutput> failed =
      run_tool({"/bin/sh", "-c", "echo out; echo one >&2; echo two >&2; exit 3"}, 10s, kFolder);
  ASSERT_TRUE(failed.ok());
  EXPECT_FALSE(failed->ok());
  EXPECT_EQ(failed->code, 3);
  EXPECT_EQ(failed->words(), "one; two");
  const Result<ToolOutput> slow = run_tool({"/bin/sh", "-c", "sleep 60"}, 200ms, kFolder);
  ASSERT_TRUE(slow.ok());
  EXPECT_TRUE(slow->timed_out);
  EXPECT_EQ(slow->words(), "no answer in time");
  EXPECT_FALSE(run_tool({"no_such_program_of_tests"}, 1s, kFolder).ok());
}

TEST(Script, IsReadableByItsOwnerAlone) {
  const tests::TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "script.sh";
  std::ofstream(file) << "older";
  ASSERT_TRUE(write_script(file, "#!/bin/sh\n").ok());
  EXPECT_EQ(std::filesystem::status(file).permissions(), std::filesystem::perms::owner_all);
}

TEST(JobOfTheAbi, IsCopiedAndChecked) {
  const std::vector<std::string> pairs = {"A=b=c"};
  const assay_str word = sdk::view("/bin/true");
  const assay_str pair = sdk::view(pairs[0]);
  const assay_task task = {.argv = &word, .argc = 1, .log = sdk::view("/log")};
  auto job = sdk::sized<assay_job>();
  job.name = sdk::view("name");
  EXPECT_FALSE(copy_job(job).ok()) << "no task";
  job.tasks = &task;
  job.task_count = 1;
  job.environment = &pair;
  job.environment_count = 1;
  const Result<Job> copy = copy_job(job);
  ASSERT_TRUE(copy.ok()) << copy.status().message();
  EXPECT_EQ(copy->environment[0], std::pair(std::string("A"), std::string("b=c")));
  EXPECT_EQ(copy->tasks[0].argv[0], "/bin/true");
  const assay_str strange = sdk::view("A;rm=1");
  job.environment = &strange;
  EXPECT_FALSE(copy_job(job).ok());
  job.environment = &pair;
  job.name = sdk::view("a\nb");
  EXPECT_FALSE(copy_job(job).ok());
}

TEST(ExitInAShell, ASignalIsToldFromACode) {
  EXPECT_EQ(exited_in_shell(3).exit_code, 3);
  EXPECT_EQ(exited_in_shell(139).signal, 11);
  EXPECT_EQ(exited_in_shell(255).exit_code, 255);
}

}  // namespace
}  // namespace assay::launchers
