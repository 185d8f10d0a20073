#include "core/train/job.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace assay::train {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

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

TEST(Job, NumbersThatNoMemberHoldsAreRefusedAndNotMadeSmaller) {
  const auto read = [](const std::string& member) { return parse_job("{\"script\": \"x\", " + member + "}"); };
  for (const char* name :
       {"repeat", "run", "max_restarts", "processes_per_node", "nodes", "node_rank", "master_port"}) {
    for (const char* number : {"4294967297", "-4294967295", "9223372036854775807", "18446744073709551615", "1e300",
                               "-2147483648", "-2147483649", "1.5", "true", "\"1\""}) {
      const Status status = read(fmt::format("\"{}\": {}", name, number)).status();
      EXPECT_EQ(status.code(), StatusCode::kInvalid) << name << number;
      EXPECT_THAT(status.message(), AllOf(HasSubstr(name), HasSubstr("expected"), Not(HasSubstr("\n"))));
    }
  }
  EXPECT_THAT(read("\"nodes\": 4294967297").status().message(),
              HasSubstr("nodes is 4294967297: expected a whole number from -2147483648 to 2147483647"));
  EXPECT_THAT(read("\"nodes\": -2147483648, \"node_rank\": 5").status().message(), HasSubstr("nodes is -2147483648"));
  for (const char* number : {"-1", "-9223372036854775808", "18446744073709551616", "0.5", "null"}) {
    EXPECT_THAT(read(fmt::format("\"memory_limit\": {}", number)).status().message(), HasSubstr("memory_limit is "));
  }
  EXPECT_EQ(read("\"memory_limit\": 18446744073709551615")->memory_limit, UINT64_MAX);
  EXPECT_EQ(read("\"nodes\": 8.0")->nodes, 8);
  for (const char* number : {"1e18", "1e300", "1000000001", "-0.5"}) {
    EXPECT_THAT(read(fmt::format("\"time_limit_s\": {}", number)).status().message(),
                AllOf(HasSubstr("time_limit_s is "), HasSubstr("expected seconds from 0 to 1000000000")));
  }
}

TEST(Job, AScriptIsAProgramWhereNemoStandsInIt) {
  for (const char* script : {"nemo", "NeMo llm generate", "x/nemo_run.py"}) EXPECT_TRUE(starts_as_program(script));
  for (const char* script : {"", "pretrain_gpt.py", "nem o"}) EXPECT_FALSE(starts_as_program(script)) << script;
}

}  // namespace
}  // namespace assay::train
