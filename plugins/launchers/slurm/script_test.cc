#include "plugins/launchers/slurm/script.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "plugins/launchers/common/tool.h"
#include "tests/temporary_folder.h"

namespace assay::launchers {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using namespace std::chrono_literals;

const std::filesystem::path kFolder = "/shared/100% out";

Job job_of(size_t tasks) {
  Job job;
  job.name = "assay-run-0";
  for (size_t i = 0; i < tasks; ++i) job.tasks.push_back({{"/bin/worker", "plan " + std::to_string(i)}, "/shared/log"});
  return job;
}

std::string script(const std::string& profile, const Job& job) {
  const Result<SlurmProfile> read = parse_profile(profile);
  EXPECT_TRUE(read.ok()) << read.status().message();
  return batch_script(*read, job, kFolder);
}

TEST(BatchScript, IsOneArrayOfAllTasks) {
  Job job = job_of(3);
  EXPECT_THAT(script("{}", job), HasSubstr("\n#SBATCH --array=0-2\n"));
  job.most_at_once = 2;
  EXPECT_THAT(script("{}", job), AllOf(HasSubstr("\n#SBATCH --array=0-2%2\n"), HasSubstr("--job-name=assay-run-0\n"),
                                       HasSubstr("'/bin/worker' 'plan 2' ;;")));
}

TEST(BatchScript, AsksForDevicesAsTheProfileSays) {
  Job job = job_of(1);
  EXPECT_THAT(script("{}", job), AllOf(Not(HasSubstr("--gres")), Not(HasSubstr("gpus"))));
  job.devices = 2;
  EXPECT_THAT(script("{}", job), HasSubstr("\n#SBATCH --gres=gpu:2\n"));
  EXPECT_THAT(script(R"({"gres": "gpu:h100:{count}"})", job), HasSubstr("\n#SBATCH --gres=gpu:h100:2\n"));
  EXPECT_THAT(script(R"({"devices": "gpus-per-task"})", job),
              AllOf(HasSubstr("\n#SBATCH --gpus-per-task=2\n"), Not(HasSubstr("--gres"))));
  EXPECT_THAT(script(R"({"devices": "none"})", job), AllOf(Not(HasSubstr("--gres")), Not(HasSubstr("gpus"))));
}

TEST(BatchScript, HasTheLimitsOfTheJobUnlessTheProfileHasItsOwn) {
  Job job = job_of(1);
  job.seconds = 61;
  job.memory = (5ULL << 20) + 1;
  job.cpus = 8;
  EXPECT_THAT(script("{}", job), AllOf(HasSubstr("\n#SBATCH --time=2\n"), HasSubstr("\n#SBATCH --mem=6M\n"),
                                       HasSubstr("\n#SBATCH --cpus-per-task=8\n")));
  EXPECT_THAT(script(R"({"time": "4:00:00", "mem": "0"})", job),
              AllOf(HasSubstr("\n#SBATCH --time=4:00:00\n"), HasSubstr("\n#SBATCH --mem=0\n")));
  EXPECT_EQ(slurm_time(1), "1");
  EXPECT_EQ(slurm_time(86400), "1-00:00:00");
  EXPECT_EQ(slurm_time(2 * 86400 + 3 * 3600 + 240), "2-03:04:00");
}

TEST(BatchScript, HasEverythingElseOfTheProfile) {
  EXPECT_THAT(script(R"({"partition": "gpu", "account": "a b", "qos": "high", "constraint": "h100&nvlink",
                         "requeue": false, "extra": ["--exclusive", "--comment='x y'"], "before": ["module load cuda"]})",
                     job_of(1)),
              AllOf(HasSubstr("\n#SBATCH --partition=gpu\n"), HasSubstr("\n#SBATCH --account=\"a b\"\n"),
                    HasSubstr("\n#SBATCH --qos=high\n"), HasSubstr("\n#SBATCH --constraint=h100&nvlink\n"),
                    HasSubstr("\n#SBATCH --no-requeue\n"), HasSubstr("\n#SBATCH --exclusive\n"),
                    HasSubstr("\n#SBATCH --comment='x y'\n"), HasSubstr("\nmodule load cuda\n")));
  EXPECT_THAT(script("{}", job_of(1)), AllOf(HasSubstr("\n#SBATCH --requeue\n"),
                                             HasSubstr("--output=\"/shared/100%% out/assay-run-0.%a.slurm.log\"")));
}

TEST(BatchScript, RunsTheTaskOfItsIndexAndLeavesItsExitCode) {
  const tests::TemporaryFolder temporary;
  const std::filesystem::path folder = temporary.path() / "assay slurm 'script'";
  std::filesystem::create_directories(folder);
  Job job;
  job.name = "name";
  job.environment = {{"VALUE", "a 'b'\nc"}};
  const std::string log = (folder / "the log").string();
  job.tasks = {{{"/bin/sh", "-c", "exit 9"}, log}, {{"/bin/sh", "-c", "printf '%s' \"$VALUE\"; exit 5"}, log}};
  ASSERT_TRUE(write_script(folder / "s.sh", batch_script({}, job, folder)).ok());
  const Result<ToolOutput> output =
      run_tool({"/usr/bin/env", "SLURM_ARRAY_TASK_ID=1", (folder / "s.sh").string()}, 10s, folder);
  ASSERT_TRUE(output.ok());
  EXPECT_EQ(output->code, 5) << output->err;
  std::ifstream written(log);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(written), {}), "a 'b'\nc");
  int code = 0;
  std::ifstream(end_file(folder, job, 1)) >> code;
  EXPECT_EQ(code, 5);
  EXPECT_FALSE(std::filesystem::exists(end_file(folder, job, 0)));
  EXPECT_EQ(run_tool({"/usr/bin/env", "SLURM_ARRAY_TASK_ID=7", (folder / "s.sh").string()}, 10s, folder)->code, 64);
}

TEST(Profile, BadOnesAreRefused) {
  EXPECT_THAT(parse_profile(R"({"partiton": "x"})").status().message(),
              AllOf(HasSubstr("partiton"), HasSubstr("'partition'")));
  EXPECT_FALSE(parse_profile(R"({"partition": 3})").ok());
  EXPECT_FALSE(parse_profile(R"({"account": "a\n#SBATCH --uid=0"})").ok());
  EXPECT_FALSE(parse_profile(R"({"extra": ["exclusive"]})").ok());
  EXPECT_FALSE(parse_profile(R"({"extra": ["--x\nrm -rf /"]})").ok());
  EXPECT_FALSE(parse_profile(R"({"devices": "two"})").ok());
  EXPECT_FALSE(parse_profile("[]").ok());
  EXPECT_THAT(parse_profile(R"({"gres": "gpu:{cont}"})").status().message(),
              AllOf(HasSubstr("gres"), HasSubstr("{cont}"), HasSubstr("'count'")));
  EXPECT_FALSE(parse_profile(R"({"gres": "gpu:{count"})").ok());
}

}  // namespace
}  // namespace assay::launchers
