#include "core/train/case_plan.h"

#include <gmock/gmock.h>

#include <set>

#include "core/discover/case_reader.h"
#include "core/train/compare_files.h"
#include "core/train/metric_file.h"
#include "core/train/uncompared.h"
#include "tests/temporary_folder.h"

namespace assay::train {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// Words that are no whole number, though most begin like one.
const std::vector<std::string> kNoNumbers = {"4x",  "ten", "4.5", "0x4", "4 4", "-4", "99999999999999999999",
                                             "1e2", "$N"};

class CasePlanning : public testing::Test {
 protected:
  CasePlanning() { variables_.set["TRAINING_SCRIPT_PATH"] = "pretrain.py"; }

  Result<CasePlan> plan(const std::string& config, const std::string& id = "") const {
    TestCase test;
    test.config = "case/model_config.yaml";
    test.name = "case";
    discover::read_config(config, test, /*needs_model_args=*/true);
    EXPECT_TRUE(test.error.ok()) << test.error.message();
    return plan_case(test, variables_, {.folder = "/out", .id = id});
  }
  // One line that names the variable and what it holds.
  void expect_refused(const std::string& config, const std::string& name, const std::string& value) const {
    const Result<CasePlan> planned = plan(config);
    ASSERT_FALSE(planned.ok()) << name << " '" << value << "'";
    EXPECT_EQ(planned.status().code(), StatusCode::kInvalid);
    EXPECT_THAT(planned.status().message(),
                AllOf(HasSubstr(name), HasSubstr("'" + value + "'"), HasSubstr("expected a"), Not(HasSubstr("\n"))));
  }
  discover::Variables variables_;
};

constexpr const char* kRegular = "TEST_TYPE: regular\nMODEL_ARGS:\n  --train-iters: 20\n";

// A folder that ends with a slash would be moved into itself when it is in the way.
TEST_F(CasePlanning, ASlashBehindAFolderChangesNothing) {
  for (const char* name : {"TENSORBOARD_PATH", "OUTPUT_PATH", "CHECKPOINT_SAVE_PATH"}) {
    variables_.set[name] = "/x/tb";
    const Result<CasePlan> bare = plan(kRegular);
    for (const char* slashes : {"/x/tb/", "/x/tb//"}) {
      variables_.set[name] = slashes;
      const Result<CasePlan> same = plan(kRegular);
      ASSERT_TRUE(bare.ok() && same.ok()) << name;
      EXPECT_EQ(to_json(same->runs[0]), to_json(bare->runs[0])) << name << "=" << slashes;
    }
    variables_.set.erase(name);
  }
  variables_.set["TENSORBOARD_PATH"] = "/x/tb/";
  EXPECT_EQ(plan(kRegular)->runs[0].folders.tensorboard, "/x/1/tb");
}

TEST_F(CasePlanning, TwoRunsOfOneNumberAreRefused) {
  const std::string head = "TEST_TYPE: checkpoint-consistency\nMODE: pretraining\nMODEL_ARGS:\n  --train-iters: 1\n";
  const Result<CasePlan> both = plan(head + "MODEL_ARGS_02:\n  --train-iters: 1\nMODEL_ARGS_2:\n  --train-iters: 1\n");
  EXPECT_EQ(both.status().code(), StatusCode::kInvalid);
  EXPECT_THAT(
      both.status().message(),
      AllOf(HasSubstr("case/model_config.yaml: MODEL_ARGS_02 and MODEL_ARGS_2 are both run 2"), Not(HasSubstr("\n"))));
  EXPECT_TRUE(plan(head + "MODEL_ARGS_03:\n  --train-iters: 1\nMODEL_ARGS_2:\n  --train-iters: 1\n").ok());
}

TEST_F(CasePlanning, NodesShareBarriersOfTheirCaseAloneAndNoLogs) {
  variables_.set["OUTPUT_PATH"] = "/shared";
  EXPECT_EQ(plan(kRegular)->runs[0].folders.logs, "/shared/logs/1");
  variables_.set["NUM_NODES"] = "2";
  std::set<std::string> logs;
  for (const bool given : {false, true}) {
    if (given) variables_.set["RUN_CI_BARRIER_DIR"] = "/meet";
    std::set<std::string> meetings;
    for (const char* node : {"0", "1"}) {
      variables_.set["NODE_RANK"] = node;
      for (const char* id : {"", "case~2", "deep/case"}) {
        const Result<CasePlan> made = plan(kRegular, id);
        ASSERT_TRUE(made.ok()) << made.status().message();
        meetings.insert(made->meeting.folder);
        logs.insert(made->runs[0].folders.logs);
        EXPECT_EQ(made->runs[0].environment.at("LOG_DIR"), made->runs[0].folders.logs);
      }
    }
    EXPECT_THAT(meetings,
                given ? ElementsAre("/meet/case", "/meet/case~2", "/meet/deep/case")
                      : ElementsAre("/shared/.run_ci_barriers/default/case", "/shared/.run_ci_barriers/default/case~2",
                                    "/shared/.run_ci_barriers/default/deep/case"));
  }
  EXPECT_THAT(logs, ElementsAre("/shared/logs/1/node_0", "/shared/logs/1/node_1"));
}

TEST_F(CasePlanning, TheFirstFailureIsTheOneThatIsTold) {
  variables_.set.erase("TRAINING_SCRIPT_PATH");
  variables_.set["GPUS_PER_NODE"] = "many";
  EXPECT_THAT(plan(kRegular).status().message(), HasSubstr("TRAINING_SCRIPT_PATH"));
}

TEST_F(CasePlanning, VariablesThatAreNoNumbersAreRefused) {
  variables_.set["OUTPUT_PATH"] = "/out";
  for (const char* name : {"GPUS_PER_NODE", "NUM_NODES", "SLURM_NNODES", "NODE_RANK", "SLURM_NODEID", "MASTER_PORT",
                           "RUN_CI_BARRIER_TIMEOUT", "SLURM_JOB_START_TIME", "SLURM_JOB_END_TIME"}) {
    const discover::Variables before = variables_;
    for (const char* time : {"SLURM_JOB_START_TIME", "SLURM_JOB_END_TIME"}) variables_.set[time] = "1700000000";
    if (std::string(name) == "RUN_CI_BARRIER_TIMEOUT") variables_.set["NUM_NODES"] = "2";
    for (const std::string& value : kNoNumbers) {
      variables_.set[name] = value;
      expect_refused(kRegular, name, value);
    }
    variables_ = before;
  }
  EXPECT_TRUE(plan(kRegular).ok());
}

TEST_F(CasePlanning, ASlurmJobLeavesTimeToSave) {
  variables_.environment["SLURM_JOB_START_TIME"] = "1700000000";
  variables_.environment["SLURM_JOB_END_TIME"] = "1700014400";
  EXPECT_THAT(plan(kRegular)->runs[0].arguments,
              ElementsAre("--exit-duration-in-mins", "225", "--train-iters", "20", "--exit-interval", "20"));
  variables_.environment["SLURM_JOB_END_TIME"] = "1700000600";
  EXPECT_EQ(plan(kRegular)->runs[0].arguments[1], "8");
}

TEST_F(CasePlanning, NumbersOfTheConfigThatAreNoneAreRefused) {
  for (const std::string& value : kNoNumbers) {
    if (value == "$N") continue;  // a variable that is not set has a message of its own
    expect_refused(
        "TEST_TYPE: checkpoint-consistency\nMODEL_ARGS:\n  --tp: 1\nMODEL_ARGS_2:\n  --tp: 2\n"
        "MODEL_ENV_VARS:\n  MODEL_ARGS_2:\n    GPUS_PER_NODE: '" +
            value + "'\n",
        "MODEL_ENV_VARS.MODEL_ARGS_2.GPUS_PER_NODE", value);
    expect_refused("TEST_TYPE: regular\nMODEL_ARGS:\n  --train-iters: '" + value + "'\n",
                   "case/model_config.yaml:3:18: --train-iters", value);
    expect_refused("TEST_TYPE: frozen-start\nMODE: rl\nENV_VARS:\n  THROUGHPUT_START_STEP: '" + value +
                       "'\n"
                       "MODEL_ARGS:\n  --train-iters: 20\n",
                   "ENV_VARS.THROUGHPUT_START_STEP", value);
  }
}

TEST_F(CasePlanning, EveryRunOfAConsistencyCaseHasItsOwnProcessesAndFolder) {
  const Result<CasePlan> planned = plan(
      "TEST_TYPE: checkpoint-consistency\nMODEL_ARGS:\n  --tp: 1\nMODEL_ARGS_2:\n  --tp: 2\nMODEL_ARGS_10:\n  --tp: 4\n"
      "MODEL_ENV_VARS:\n  MODEL_ARGS:\n    GPUS_PER_NODE: 1\n  MODEL_ARGS_10:\n    GPUS_PER_NODE: 4\n");
  ASSERT_TRUE(planned.ok()) << planned.status().message();
  ASSERT_EQ(planned->runs.size(), 3u);
  EXPECT_EQ(planned->runs[0].processes_per_node, 1);
  EXPECT_EQ(planned->runs[1].processes_per_node, 8);
  EXPECT_EQ(planned->runs[2].processes_per_node, 4);
  EXPECT_EQ(planned->runs[2].run, 10);
  EXPECT_EQ(planned->runs[2].folders.save, "/out/checkpoints/repeat_1_key_MODEL_ARGS_10");
}

TEST_F(CasePlanning, TheStartOfThroughputIsLookedAtInReinforcementLearningAlone) {
  TestCase test;
  discover::read_config("TEST_TYPE: regular\nENV_VARS:\n  THROUGHPUT_START_STEP: ten\nMODEL_ARGS:\n  --a: 1\n", test,
                        true);
  EXPECT_TRUE(facts_of(test).rules().ok());
  test.mode = "rl";
  EXPECT_THAT(facts_of(test).rules().status().message(), HasSubstr("THROUGHPUT_START_STEP 'ten'"));
  test.env_vars[0].value = "";
  EXPECT_THAT(facts_of(test).rules().status().message(), HasSubstr("THROUGHPUT_START_STEP ''"));
  test.env_vars[0].value = "10";
  EXPECT_EQ(facts_of(test).rules()->throughput_start, 10);
  const tests::TemporaryFolder folder;
  const std::string golden = folder / "golden.json";
  ASSERT_TRUE(write_metrics(golden, {.metrics = {{"iteration-time", 1, 1, 1, {{1, 2.0, false}}}}, .notes = {}}).ok());
  test.metrics = std::vector<std::string>{"iteration-time"};
  test.env_vars[0].value = "1x";
  const ComparedFiles compared = compare_files(test, golden, golden);
  EXPECT_EQ(compared.verdict.verdict, Verdict::kInvalid);
  EXPECT_THAT(compared.verdict.reason, HasSubstr("THROUGHPUT_START_STEP '1x'"));
}

TEST_F(CasePlanning, RepeatsAreAWholeNumber) {
  TestCase test;
  discover::read_config(kRegular, test, true);
  for (const std::string& value : kNoNumbers) {
    variables_.set["N_REPEAT"] = value;
    EXPECT_THAT(repeats_of(test, variables_, 100).status().message(), HasSubstr("N_REPEAT '" + value + "'")) << value;
  }
  variables_.set["N_REPEAT"] = "3";
  EXPECT_EQ(*repeats_of(test, variables_, 100), 3);
}

TEST_F(CasePlanning, OnceIsToldFromNotSaid) {
  const auto repeats = [this](const std::string& more) {
    TestCase test;
    discover::read_config(kRegular + more, test, true);
    return *repeats_of(test, variables_, 100);
  };
  EXPECT_EQ(repeats(""), std::nullopt);
  EXPECT_EQ(repeats("ENV_VARS:\n  N_REPEAT: 1\n"), 1);
  EXPECT_EQ(repeats("ENV_VARS:\n  N_REPEAT: 4\n  SKIP_PYTEST: 1\n"), 1);
  EXPECT_EQ(repeats("ENV_VARS:\n  ENABLE_LIGHTWEIGHT_MODE: true\n"), 1);
  variables_.set["N_REPEAT"] = "1";
  EXPECT_EQ(repeats(""), 1);
}

// In which modes and types a word keeps Megatron-LM's script from comparing.
TEST_F(CasePlanning, WordsWithWhichNothingIsCompared) {
  struct {
    const char* mode;
    const char* type;
    const char* light;  // what ENABLE_LIGHTWEIGHT_MODE comes to
  } const kinds[] = {{"pretraining", "regular", "ENABLE_LIGHTWEIGHT_MODE"},
                     {"pretraining", "checkpoint-consistency", "ENABLE_LIGHTWEIGHT_MODE"},
                     {"pretraining", "release", ""},
                     {"inference", "frozen-start", "ENABLE_LIGHTWEIGHT_MODE"},
                     {"inference", "release", ""},
                     {"rl", "frozen-start", ""},
                     {"rl", "release", ""}};
  for (const auto& [mode, type, light] : kinds) {
    TestCase test;
    test.mode = mode;
    test.test_type = type;
    const auto why = [&](const std::string& name, const std::string& value, bool of_case) {
      discover::Variables variables;
      test.env_vars.clear();
      if (of_case) test.env_vars.push_back({.name = name, .value = value, .place = {}});
      if (!of_case) variables.environment[name] = value;
      return why_uncompared(test, variables);
    };
    const std::string kind = std::string(mode) + " " + type;
    EXPECT_EQ(why("ENABLE_LIGHTWEIGHT_MODE", "true", true), light) << kind;
    EXPECT_EQ(why("ENABLE_LIGHTWEIGHT_MODE", "true", false), light) << kind;
    EXPECT_EQ(why("ENABLE_LIGHTWEIGHT_MODE", "1", false), "") << kind;
    EXPECT_EQ(why("SKIP_PYTEST", "1", true), "SKIP_PYTEST") << kind;
    EXPECT_EQ(why("SKIP_PYTEST", "true", true), "") << kind;
    EXPECT_EQ(why("SKIP_PYTEST", "1", false), "") << kind << ": the script reads it from the case alone";
    EXPECT_EQ(why("RECORD_CHECKPOINTS", "true", false), "RECORD_CHECKPOINTS") << kind;
    EXPECT_EQ(why("RECORD_CHECKPOINTS", "true", true), "") << kind << ": the script looks at its own environment";
  }
}

TEST_F(CasePlanning, LightweightReinforcementLearningIsRepeatedAndComparedAsAlways) {
  variables_.set["CHECKPOINT_LOAD_PATH"] = "/frozen";
  variables_.set["ENABLE_LIGHTWEIGHT_MODE"] = "true";
  const std::string config =
      "TEST_TYPE: frozen-start\nMODE: rl\nENV_VARS:\n  N_REPEAT: 3\nMODEL_ARGS:\n  --exit-interval: 30\n";
  const Result<CasePlan> planned = plan(config);
  ASSERT_TRUE(planned.ok()) << planned.status().message();
  EXPECT_EQ(planned->uncompared, "");
  EXPECT_EQ(planned->train_iters, 30);
  TestCase test;
  discover::read_config(config, test, true);
  EXPECT_EQ(*repeats_of(test, variables_, 100), 3);
}

}  // namespace
}  // namespace assay::train
