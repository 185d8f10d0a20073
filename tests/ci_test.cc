// assay ci: the words of Megatron-LM's run_ci_test.sh, on a test engine that trains as its arguments say.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <map>

#include "tests/program.h"

namespace assay::tests {
namespace {

using testing::HasSubstr;
using testing::Not;

class Ci : public testing::Test {
 protected:
  // A golden of 20 steps whose loss is 10 - step / 100, and a case of that length; `more`: further lines of its config.
  void add_case(const std::string& type, const std::string& args = "", const std::string& more = "") {
    write_file(folder_ / "case/model_config.yaml",
               "TEST_TYPE: " + type + "\nMODEL_ARGS:\n  --train-iters: 20\n  --save-interval: 10\n" +
                   "  --save: ${CHECKPOINT_SAVE_PATH}\n" + args + "METRICS: [lm loss]\n" + more);
    std::string values;
    for (int step = 1; step <= 20; ++step) {
      values += (step > 1 ? ", \"" : "\"") + std::to_string(step) + "\": 9." + std::to_string(100 - step);
    }
    write_file(golden(), "{\"lm loss\": {\"start_step\": 1, \"end_step\": 20, \"step_interval\": 1, \"values\": {" +
                             values + "}}}");
  }
  std::string golden() const { return folder_ / "case/golden_values_dev_dgx_h100.json"; }
  std::vector<std::string> words() const {
    return {"ci",
            "TRAINING_SCRIPT_PATH=\"pretrain_gpt.py\"",
            "TRAINING_PARAMS_PATH=" + (folder_ / "case/model_config.yaml"),
            "GOLDEN_VALUES_PATH=" + golden(),
            "OUTPUT_PATH=" + (folder_ / "results"),
            "TENSORBOARD_PATH=" + (folder_ / "tb/logs"),
            "CHECKPOINT_SAVE_PATH=" + (folder_ / "save"),
            "CHECKPOINT_LOAD_PATH=" + (folder_ / "load"),
            "DATA_PATH=null",
            "DATA_CACHE_PATH=" + (folder_ / "cache"),
            "WANDB_API_KEY=very-secret-word",
            "--engine",
            "training",
            "--plugin-path",
            std::string(ASSAY_BINARY_DIR) + "/tests/plugins"};
  }
  // `more`: words and options, in place of usual words of that name.
  Output run(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> all = words();
    for (const std::string& word : more) {
      const std::string key = word.starts_with("--") ? "" : word.substr(0, word.find('=') + 1);
      std::erase_if(all, [&key](const std::string& usual) { return !key.empty() && usual.starts_with(key); });
    }
    all.insert(all.end(), more.begin(), more.end());
    return run_program("assay", all);
  }
  TemporaryFolder folder_;
};

TEST_F(Ci, RunsTheCaseAndPutsFilesWhereTheWordsSay) {
  add_case("ckpt-resume");
  const Output output = run();
  EXPECT_EQ(output.code, 0) << output.out << output.err;
  EXPECT_THAT(output.out, HasSubstr("IDENTICAL"));
  EXPECT_THAT(output.out, HasSubstr("TRAINING_SCRIPT_PATH=pretrain_gpt.py"));
  EXPECT_THAT(read_file(folder_ / "results/golden_values_dev_dgx_h100.json"), HasSubstr("lm loss"));
  EXPECT_THAT(read_file(folder_ / "results/golden_values_dev_dgx_h100_2nd.json"), HasSubstr("lm loss"));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "tb/1/logs/run_1"));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "save/iter_0000020"));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "results/logs/1/job_1.json"));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "results/assay/junit.xml"));
}

TEST_F(Ci, WordsOfTheEnvironmentCountAsThoseOfTheCommandLine) {
  add_case("ckpt-resume");
  std::map<std::string, std::string> exported = {{"N_REPEAT", "2"}, {"RUN_CI_BARRIER_DIR", folder_ / "meet"}};
  std::vector<std::string> rest = words();
  std::erase_if(rest, [&](const std::string& word) {
    const std::string name = word.substr(0, word.find('='));
    if (!name.ends_with("_PATH") || name.starts_with("TRAINING_")) return false;
    exported[name] = word.substr(name.size() + 1);
    return true;
  });
  ASSERT_EQ(exported.size(), 2u + 7u);
  for (const auto& [name, value] : exported) ::setenv(name.c_str(), value.c_str(), 1);
  const Output output = run_program("assay", rest);
  EXPECT_EQ(output.code, 0) << output.out << output.err;
  for (const char* made : {"tb/1/logs/run_1", "tb/2/logs/run_2", "save/iter_0000020", "results/logs/1/job_1.json",
                           "results/logs/2/job_2.json", "results/golden_values_dev_dgx_h100.json"}) {
    EXPECT_TRUE(std::filesystem::exists(folder_ / made)) << made;
  }
  rest.insert(rest.end(), {"NUM_NODES=2", "NODE_RANK=0", "RUN_CI_BARRIER_TIMEOUT=1"});
  const Output alone = run_program("assay", rest);
  EXPECT_EQ(alone.code, 3) << alone.out << alone.err;
  EXPECT_TRUE(std::filesystem::exists(folder_ / "meet")) << "the nodes meet where RUN_CI_BARRIER_DIR says";
  for (const auto& [name, value] : exported) ::unsetenv(name.c_str());
}

TEST_F(Ci, ResultsNeverReplaceTheGolden) {
  add_case("regular", "  --drift-at: 3\n");
  const std::string before = read_file(golden());
  for (const std::string& place : {folder_ / "case", folder_ / "other/../case"}) {
    const Output output = run({"OUTPUT_PATH=" + place, "--output", folder_ / "reports"});
    EXPECT_EQ(output.code, 1);
    EXPECT_THAT(output.out, HasSubstr("is the golden of the case, which results would replace"));
    EXPECT_EQ(read_file(golden()), before);
  }
}

TEST_F(Ci, SecretsAreNotWritten) {
  add_case("regular");
  const Output output = run(
      {"--engine-options", R"({"api_key": "option-secret-word", "environment": {"HUB_TOKEN": "third-secret-word"}})"});
  EXPECT_EQ(output.code, 0) << output.out << output.err;
  EXPECT_THAT(output.out + output.err, Not(HasSubstr("secret-word")));
  EXPECT_THAT(read_file(folder_ / "results/assay/report.html"), HasSubstr("--engine-options"));
  size_t files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_ / "results")) {
    // The environment of the job is handed on to the engine, which may log it; the test engine does.
    if (!entry.is_regular_file() || entry.path().filename() == "job_1.json") continue;
    ++files;
    EXPECT_THAT(read_file(entry.path()), Not(HasSubstr("secret-word"))) << entry.path();
  }
  EXPECT_GT(files, 3u);
}

TEST_F(Ci, FailsWhereTheVerdictDoes) {
  add_case("regular", "  --drift-at: 3\n");
  EXPECT_EQ(run().code, 1);
  add_case("regular", "  --exit: 2\n");
  EXPECT_EQ(run().code, 1);
  add_case("regular", "  --exit: 2\n", "TEST_EVALUATION: xpass\n");
  EXPECT_EQ(run().code, 0);
}

TEST_F(Ci, ASmokeTestThatEndsWellIsZero) {
  add_case("regular");
  EXPECT_EQ(run({"ENABLE_LIGHTWEIGHT_MODE=true"}).code, 0);
  EXPECT_EQ(run({"RECORD_CHECKPOINTS=true"}).code, 0);
  add_case("regular", "  --exit: 2\n");
  EXPECT_EQ(run({"RECORD_CHECKPOINTS=true"}).code, 1);
}

TEST_F(Ci, TheirVerdictIsToldBesideOurs) {
  add_case("regular", "  --drift-at: 3\n");
  const auto log = [this] { return read_file(folder_ / "results/assay/results.jsonl"); };
  EXPECT_EQ(run().code, 1);
  EXPECT_THAT(log(), Not(HasSubstr("\"compat\":{")));
  EXPECT_EQ(run({"--compat", "megatron"}).code, 1);
  EXPECT_THAT(log(), HasSubstr("\"compat\":{\"of\":\"megatron\",\"verdict\":\"failed\""));
  EXPECT_EQ(run({"--compat", "other"}).code, 2);
}

TEST_F(Ci, TwoNodesMeetAndTheFirstJudges) {
  add_case("regular");
  const Output alone = run({"NUM_NODES=2", "NODE_RANK=0", "RUN_CI_BARRIER_TIMEOUT=1", "RUN_CI_BARRIER_ID=alone"});
  EXPECT_EQ(alone.code, 3) << alone.out;
  EXPECT_THAT(alone.out, HasSubstr("missing: 1"));
  add_case("regular", "  --exit: 2\n");
  write_file(folder_ / "results/.run_ci_barriers/two/case/repeat_1_start/node_0", "");
  for (const char* name : {"repeat_1_run_1_start", "repeat_1_run_1_status", "repeat_1_run_1_end"}) {
    write_file(folder_.path() / "results/.run_ci_barriers/two/case" / name / "node_0", "0\n");
  }
  EXPECT_EQ(run({"NUM_NODES=2", "NODE_RANK=1", "RUN_CI_BARRIER_ID=two"}).code, 1);
  EXPECT_EQ(read_file(folder_ / "results/.run_ci_barriers/two/case/repeat_1_run_1_status/node_1"), "2\n");
  add_case("regular");
  EXPECT_EQ(run({"NUM_NODES=2", "NODE_RANK=1", "RUN_CI_BARRIER_ID=two"}).code, 0) << "node 0 judges";
}

TEST_F(Ci, GradientsOfEveryRunOfAConsistencyCaseAreCompared) {
  const auto add = [&](const std::string& first, const std::string& second) {
    const auto args = [](const std::string& name, const std::string& more) {
      return name + ":\n  --train-iters: 1\n  --save-interval: 1\n  --save: ${CHECKPOINT_SAVE_PATH}\n" + more;
    };
    write_file(folder_ / "case/model_config.yaml", "TEST_TYPE: checkpoint-consistency\nMODE: pretraining\n" +
                                                       args("MODEL_ARGS", first) + args("MODEL_ARGS_2", second) +
                                                       "MODEL_ENV_VARS:\n  MODEL_ARGS:\n    GPUS_PER_NODE: 1\n" +
                                                       "  MODEL_ARGS_2:\n    GPUS_PER_NODE: 2\n");
    return run();
  };
  const std::string whole = "  --gradients: 1\n";
  const auto expect = [&](const Output& output, int code, const std::string& verdict) {
    EXPECT_EQ(output.code, code) << output.out << output.err;
    EXPECT_THAT(output.out, HasSubstr(verdict));
  };
  expect(add(whole, whole), 0, "IDENTICAL");
  EXPECT_TRUE(std::filesystem::exists(folder_ / "save/repeat_1_key_MODEL_ARGS/iter_0000001"));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "save/repeat_1_key_MODEL_ARGS_2/iter_0000001"));
  EXPECT_THAT(read_file(folder_ / "results/logs/1/job_2.json"), HasSubstr("\"processes_per_node\":2"));
  expect(add(whole, whole + "  --tp: 2\n"), 0, "IDENTICAL");
  expect(add(whole + "  --tp: 2\n", whole), 0, "IDENTICAL");
  expect(add(whole, "  --gradients: 1.01\n"), 0, "EQUIVALENT");
  expect(add(whole, "  --gradients: 1.5\n"), 1, "DIVERGED");
  expect(add(whole, "  --gradients: 0\n"), 1, "DIVERGED");
  expect(add("  --gradients: 0\n", "  --gradients: 0\n"), 1, "INVALID");
  expect(add(whole, whole + "  --exit: 2\n"), 1, "CRASHED");
  expect(add(whole, ""), 1, "INVALID");
}

TEST_F(Ci, ACheckpointOfAnEarlierRunIsNotResumedFrom) {
  add_case("ckpt-resume");
  EXPECT_EQ(run().code, 0);
  add_case("ckpt-resume", "  --save-interval: 7\n");
  const Output output = run();
  EXPECT_EQ(output.code, 1);
  EXPECT_THAT(output.out, HasSubstr("saved no iter_0000010"));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "save/iter_0000010.before_1")) << "moved aside, not deleted";
}

TEST_F(Ci, SaysWhatIsMissingInOneLine) {
  const Output output = run_program("assay", {"ci", "OUTPUT_PATH=/x", "DATA_PATH="});
  EXPECT_EQ(output.code, 2);
  EXPECT_THAT(output.err, HasSubstr("missing or empty: TRAINING_SCRIPT_PATH, TRAINING_PARAMS_PATH, GOLDEN_VALUES_PATH, "
                                    "TENSORBOARD_PATH, CHECKPOINT_SAVE_PATH, CHECKPOINT_LOAD_PATH, DATA_PATH, "
                                    "DATA_CACHE_PATH"));
  EXPECT_THAT(run_program("assay", {"ci", "word"}).err, HasSubstr("expected KEY=VALUE"));
  EXPECT_THAT(run_program("assay", {"ci", "DATA_PATH=$(ls)"}).err, HasSubstr("would be expanded by the shell"));
}

TEST_F(Ci, ValuesOfATrainingCanBeComparedWithoutAnEngine) {
  add_case("regular");
  const Output same = run_program(
      "assay", {"compare", golden(), golden(), "--config", folder_ / "case/model_config.yaml", "--compat", "megatron"});
  EXPECT_EQ(same.code, 0) << same.err;
  EXPECT_THAT(same.out, HasSubstr("IDENTICAL"));
  EXPECT_THAT(same.out, HasSubstr("megatron: passes (all metrics passed)"));
  const Output missing = run_program(
      "assay", {"compare", golden(), folder_ / "none.json", "--config", folder_ / "case/model_config.yaml"});
  EXPECT_EQ(missing.code, 1);
  EXPECT_THAT(missing.out, HasSubstr("INVALID"));
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  const std::pair<std::string, std::string> wrong[] = {{folder_ / "case", "is a folder"},
                                                       {folder_ / "pipe", "is a named pipe"}};
  for (const auto& [path, words] : wrong) {
    const Output output =
        run_program("assay", {"compare", path, golden(), "--config", folder_ / "case/model_config.yaml"});
    EXPECT_EQ(output.code, 1) << output.err;
    EXPECT_THAT(output.out, HasSubstr(words));
  }
}

}  // namespace
}  // namespace assay::tests
