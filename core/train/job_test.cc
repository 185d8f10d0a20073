#include "core/train/job.h"

#include <gmock/gmock.h>

namespace assay::train {
namespace {

using testing::HasSubstr;

TEST(Job, ComesBackAsItWasWritten) {
  Job job;
  job.name = "gpt/one";
  job.repeat = 2;
  job.run = 3;
  job.script = "pretrain_gpt.py";
  job.script_is_program = true;
  job.arguments = {"--a", "b c", "\"", ""};
  job.environment = {{"NAME", "value"}};
  job.launcher = "ft_launcher";
  job.max_restarts = 0;
  job.processes_per_node = 4;
  job.nodes = 2;
  job.node_rank = 1;
  job.master_address = "other";
  job.master_port = 1234;
  job.folder = "/work";
  job.folders = {.output = "/o", .logs = "/o/logs", .tensorboard = "/o/tb", .load = "/l", .save = "/s"};
  job.time_limit_s = 1.5;
  job.memory_limit = 1ull << 40;
  job.command = {"/bin/sh", "-c"};
  job.before_script = "a\nb";
  job.after_script = "c";
  const Result<Job> read = parse_job(to_json(job));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(to_json(*read), to_json(job));
  EXPECT_EQ(read->arguments, job.arguments);
  EXPECT_EQ(read->folders.save, "/s");
  EXPECT_EQ(read->memory_limit, 1ull << 40);
}

TEST(Job, TakesDefaultsForWhatIsNotSaid) {
  const Result<Job> read = parse_job(R"({"script": "x.py", "later": 1})");
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->launcher, "torchrun");
  EXPECT_EQ(read->processes_per_node, 8);
  EXPECT_EQ(read->master_port, 29500);
}

TEST(Job, NamesTheMemberThatIsWrong) {
  const auto reason = [](const char* text) { return parse_job(text).status().message(); };
  EXPECT_THAT(reason("[]"), HasSubstr("expected a JSON object"));
  EXPECT_THAT(reason("{}"), HasSubstr("script is empty"));
  EXPECT_THAT(reason(R"({"script": 1})"), HasSubstr("script is 1"));
  EXPECT_THAT(reason(R"({"script": "x", "arguments": "-a"})"), HasSubstr("arguments is \"-a\""));
  EXPECT_THAT(reason(R"({"script": "x", "arguments": [1]})"), HasSubstr("arguments is [1]"));
  EXPECT_THAT(reason(R"({"script": "x", "nodes": 2, "node_rank": 2})"), HasSubstr("node_rank is 2"));
  EXPECT_THAT(reason(R"({"script": "x", "nodes": 1.5})"), HasSubstr("nodes is 1.5"));
  EXPECT_THAT(reason(R"({"script": "x", "launcher": "mpirun"})"), HasSubstr("torchrun or ft_launcher"));
  EXPECT_THAT(reason(R"({"script": "x", "folders": {"save": null}})"), HasSubstr("folders.save is null"));
  EXPECT_THAT(reason(R"({"script": "x", "time_limit_s": -1})"), HasSubstr("time_limit_s"));
}

}  // namespace
}  // namespace assay::train
