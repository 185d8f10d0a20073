// assay recipe: list and run, as a user types them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/program.h"

namespace assay::tests {
namespace {

using nlohmann::json;
using testing::HasSubstr;

constexpr const char* kHead = R"(type: basic
format_version: 1
maintainers: [mcore]
loggers: [stdout]
spec:
  name: '{test_case}_{environment}_{platforms}'
  model: moe
  build: mcore-{environment}
  nodes: 1
  gpus: 1
  n_repeat: 1
  script: |-
    ARGUMENTS=(
        "CHECKPOINT_LOAD_PATH=/mnt/artifacts"
        "TRAINING_SCRIPT_PATH=examples/inference/advanced/gpt_static_inference.py"
        "TRAINING_PARAMS_PATH=./tests/functional_tests/test_cases/{model}/{test_case}/model_config.yaml"
        "GOLDEN_VALUES_PATH=./tests/functional_tests/test_cases/{model}/{test_case}/golden_values_{environment}_{platforms}.json"
        "OUTPUT_PATH={assets_dir}"
    )
    bash run_ci_test.sh ${{ARGUMENTS[@]}}
products:
)";

// A repository with one case that has goldens of two platforms, one of which is another text's.
class RecipeRun : public testing::Test {
 protected:
  void SetUp() override {
    const std::string dir = folder_ / "tests/functional_tests/test_cases/moe/echo/";
    write_file(dir + "model_config.yaml",
               "ENV_VARS:\n  SKIP: 1\nTEST_TYPE: frozen-start\nMODE: inference\nMETRICS: [generated_tokens]\n"
               "MODEL_ARGS:\n  --use-legacy-static-engine: true\n  --load: ${CHECKPOINT_LOAD_PATH}/x\n  "
               "--tokenizer-model: /nowhere.json\n"
               "  --tokenizer-type: TikTokenizer\n  --num-tokens-to-generate: 3\n  --prompts: hello\n");
    const char* golden = R"({"0": {"input_prompt": "hello", "generated_text": " abc", "generated_tokens": [1, 2, 3]}})";
    write_file(dir + "golden_values_dev_dgx_h100.json", golden);
    write_file(dir + "golden_values_lts_dgx_a100.json", golden);
  }

  Output recipe(const std::string& command, const std::string& products, std::vector<std::string> options) {
    write_file(folder_ / "recipes/r.yaml", kHead + products);
    std::vector<std::string> words = {"recipe", command, folder_ / "recipes/r.yaml"};
    words.insert(words.end(), options.begin(), options.end());
    return run_program("assay", words);
  }

  const TemporaryFolder folder_;
};

constexpr const char* kTwo =
    "  - test_case: [echo]\n    products:\n      - environment: [dev]\n        platforms: [dgx_h100]\n        scope: "
    "[mr]\n"
    "      - environment: [lts]\n        platforms: [dgx_a100]\n        scope: [nightly]\n        n_repeat: [2]\n"
    "        time_limit: [60]\n";

TEST_F(RecipeRun, WorkloadsOfOneCaseRunWithTheirOwnGoldenAndRepeats) {
  const Output run = recipe("run", kTwo, {"--engine", "replay", "--json", "--output", folder_ / "out"});
  ASSERT_EQ(run.code, 0) << run.out << run.err;
  const json outcomes = json::parse(run.out);
  ASSERT_EQ(outcomes.size(), 2U) << run.out;
  EXPECT_EQ(outcomes[0]["name"], "moe/echo_dev_dgx_h100");
  EXPECT_EQ(outcomes[1]["name"], "moe/echo_lts_dgx_a100");
  for (const json& one : outcomes) EXPECT_EQ(one["verdict"], "IDENTICAL") << one.dump();
  EXPECT_TRUE(std::filesystem::exists(folder_ / "out/cases/moe/echo_dev_dgx_h100/actual.json"));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "out/cases/moe/echo_lts_dgx_a100/repeat_2/actual.json"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "out/cases/moe/echo_dev_dgx_h100/repeat_2"));
}

TEST_F(RecipeRun, FiltersSelectAndTheReproducingCommandNamesWhatTheWorkloadSays) {
  const Output run =
      recipe("run", kTwo, {"--engine", "replay", "--json", "--platform", "dgx_a100", "--output", folder_ / "out"});
  ASSERT_EQ(run.code, 0) << run.out << run.err;
  const json outcomes = json::parse(run.out);
  ASSERT_EQ(outcomes.size(), 1U);
  const std::string journal = read_file(folder_ / "out/results.jsonl");
  EXPECT_THAT(journal, HasSubstr("--environment lts --platform dgx_a100 --engine replay --repeat 2 --timeout 60"));
  EXPECT_EQ(recipe("run", kTwo, {"--engine", "replay", "--scope", "weekly"}).code, 4);
}

TEST_F(RecipeRun, WorkloadsOfTwoScopesAreToldApart) {
  const Output run =
      recipe("run",
             "  - test_case: [echo]\n    products:\n      - environment: [dev]\n        scope: [mr, nightly]\n"
             "        platforms: [dgx_h100]\n",
             {"--engine", "replay", "--json", "--output", folder_ / "out"});
  ASSERT_EQ(run.code, 0) << run.out << run.err;
  const json outcomes = json::parse(run.out);
  ASSERT_EQ(outcomes.size(), 2U);
  EXPECT_EQ(outcomes[0]["name"], "moe/echo_dev_dgx_h100:mr");
  EXPECT_EQ(outcomes[1]["name"], "moe/echo_dev_dgx_h100:L2");
}

TEST_F(RecipeRun, VariablesOfTheScriptReachTheCaseAlsoWhereWorkloadsDiffer) {
  const std::string product =
      "  - test_case: [echo]\n    products:\n      - environment: [dev]\n        platforms: [dgx_h100]\n";
  std::string other = kHead;
  other.replace(other.find("/mnt/artifacts"), 14, "/elsewhere");
  write_file(folder_ / "recipes/other.yaml", other +
                                                 "  - test_case: [echo]\n    products:\n      - environment: [lts]\n"
                                                 "        platforms: [dgx_a100]\n");
  const Output one = recipe("run", product, {"--engine", "replay", "--json", "--output", folder_ / "one"});
  EXPECT_EQ(one.code, 0) << one.out << one.err;
  EXPECT_THAT(read_file(folder_ / "one/results.jsonl"), HasSubstr("--set CHECKPOINT_LOAD_PATH=/mnt/artifacts"));
  const Output both = recipe(
      "run", product, {folder_ / "recipes/other.yaml", "--engine", "replay", "--json", "--output", folder_ / "both"});
  ASSERT_EQ(both.code, 0) << both.out << both.err;
  EXPECT_EQ(json::parse(both.out).size(), 2U);
}

// A shell script that writes the golden, or what trains, is known from the recipe alone.
TEST_F(RecipeRun, TheScriptOfAWorkloadReachesItsEngine) {
  const std::string tool = folder_ / "tool.sh";
  write_file(tool, "cp \"$1\" \"$2\"\n");
  const std::string golden = folder_ / "tests/functional_tests/test_cases/moe/echo/golden_values_dev_dgx_h100.json";
  const std::string options = json{{"command", {"sh", "{script}", golden, "{output}"}}}.dump();
  std::string head = kHead;
  head.replace(head.find("examples/inference/advanced/gpt_static_inference.py"), 51, tool);
  write_file(folder_ / "recipes/tool.yaml", head +
                                                "  - test_case: [echo]\n    products:\n      - environment: [dev]\n"
                                                "        platforms: [dgx_h100]\n");
  const Output workload = run_program("assay", {"recipe", "run", folder_ / "recipes/tool.yaml", "--engine", "process",
                                                "--engine-options", options, "--output", folder_ / "out"});
  EXPECT_EQ(workload.code, 0) << workload.out << workload.err;
  EXPECT_THAT(workload.out, HasSubstr("IDENTICAL"));
  EXPECT_THAT(read_file(folder_ / "out/results.jsonl"), HasSubstr("--set TRAINING_SCRIPT_PATH=" + tool));
  const Output plain = run_program("assay", {"run", folder_ / "tests", "--engine", "process", "--engine-options",
                                             options, "--platform", "dgx_h100", "--set", "TRAINING_SCRIPT_PATH=" + tool,
                                             "--set", "CHECKPOINT_LOAD_PATH=/none", "--output", folder_ / "plain"});
  EXPECT_EQ(plain.code, 0) << plain.out << plain.err;
}

TEST_F(RecipeRun, WhatTrainsIsTheScriptOfTheWorkload) {
  const std::string dir = folder_ / "tests/functional_tests/test_cases/moe/train/";
  write_file(dir + "model_config.yaml", "TEST_TYPE: regular\nMODEL_ARGS:\n  --train-iters: 2\nMETRICS: [lm loss]\n");
  write_file(dir + "golden_values_dev_dgx_h100.json",
             R"({"lm loss": {"start_step": 1, "end_step": 2, "step_interval": 1, "values": {"1": 9.99, "2": 9.98}}})");
  std::string head = kHead;
  head.replace(head.find("examples/inference/advanced/gpt_static_inference.py"), 51, "pretrain_gpt.py");
  write_file(folder_ / "recipes/train.yaml", head +
                                                 "  - test_case: [train]\n    products:\n"
                                                 "      - environment: [dev]\n        platforms: [dgx_h100]\n");
  const Output run =
      run_program("assay", {"recipe", "run", folder_ / "recipes/train.yaml", "--engine", "training", "--plugin-path",
                            std::string(ASSAY_BINARY_DIR) + "/tests/plugins", "--output", folder_ / "out"});
  EXPECT_EQ(run.code, 0) << run.out << run.err;
  EXPECT_THAT(read_file(folder_ / "out/cases/moe/train_dev_dgx_h100/run_1/logs/job_1.json"),
              HasSubstr("pretrain_gpt.py"));
}

// Our engines write results in the form of the inference script that is named, and in no other script's.
TEST(TrainingScriptPath, DecidesTheFormOfResultsWhereItIsAScriptOfInference) {
  const TemporaryFolder folder;
  for (const auto& [script, is_dynamic] :
       {std::pair("gpt_dynamic_inference.py", true), std::pair("gpt_static_inference.py", false),
        std::pair("pretrain_gpt.py", false)}) {
    const std::string output = folder / script;
    const Output run = run_program("assay", {"run", "testcases/moe/moe_10m_licences_fp32_buffered", "--set",
                                             std::string("TRAINING_SCRIPT_PATH=some/") + script, "--output", output});
    EXPECT_LE(run.code, 1) << run.out << run.err;
    const json actual = json::parse(read_file(output + "/cases/moe_10m_licences_fp32_buffered/actual.json"));
    EXPECT_EQ(actual["0"].contains("ttft"), is_dynamic) << script;
  }
}

TEST_F(RecipeRun, AVariableThatOneScriptDoesNotGiveIsNotTakenFromAnother) {
  const std::string product =
      "  - test_case: [echo]\n    products:\n      - environment: [lts]\n"
      "        platforms: [dgx_a100]\n";
  const std::string line = "        \"CHECKPOINT_LOAD_PATH=/mnt/artifacts\"\n";
  for (const std::string other : {"", "        \"CHECKPOINT_LOAD_PATH=${{DIR}}/b\"\n"}) {
    std::string head = kHead;
    head.replace(head.find(line), line.size(), other);
    write_file(folder_ / "recipes/other.yaml", head + product);
    const Output run = recipe(
        "run", "  - test_case: [echo]\n    products:\n      - environment: [dev]\n        platforms: [dgx_h100]\n",
        {folder_ / "recipes/other.yaml", "--engine", "static_legacy", "--json", "--output",
         folder_ / ("out" + std::to_string(other.size()))});
    const json outcomes = json::parse(run.out);
    ASSERT_EQ(outcomes.size(), 2U) << run.out << run.err;
    EXPECT_THAT(outcomes[0].dump(), HasSubstr("/mnt/artifacts"));
    EXPECT_EQ(outcomes[1]["verdict"], "INVALID");
    EXPECT_THAT(outcomes[1].dump(),
                testing::AllOf(HasSubstr("CHECKPOINT_LOAD_PATH"), testing::Not(HasSubstr("/mnt/artifacts"))));
  }
}

TEST_F(RecipeRun, TheCaseIsTheConfigThatTheScriptNames) {
  const std::string dir = folder_ / "tests/functional_tests/test_cases/moe/echo/";
  std::string config = read_file(dir + "model_config.yaml");
  write_file(dir + "model_config_long.yaml", config.replace(config.find("hello"), 5, "farewell"));
  write_file(dir + "old/model_config.yaml", "MODE: pretraining\n");
  std::string head = kHead;
  head.replace(head.find("model_config.yaml"), 17, "model_config_long.yaml");
  const std::string product =
      "  - test_case: [echo]\n    products:\n      - environment: [dev]\n"
      "        platforms: [dgx_h100]\n";
  EXPECT_EQ(recipe("run", product, {"--engine", "replay", "--output", folder_ / "usual"}).code, 0)
      << "a case in a folder below it is another one";
  write_file(folder_ / "recipes/long.yaml", head + product);
  const Output run = run_program("assay", {"recipe", "run", folder_ / "recipes/long.yaml", "--engine", "replay",
                                           "--json", "--output", folder_ / "long"});
  const json long_one = json::parse(run.out)[0];
  const std::string again = ASSAY_BINARY_DIR "/bin/" + long_one["reproduce"].get<std::string>();
  EXPECT_THAT(again, HasSubstr("assay run " + dir + "model_config_long.yaml ")) << run.out << run.err;
  const Output same = run_file("/bin/sh", {"-c", again + " --json --output " + folder_ / "again"});
  EXPECT_EQ(json::parse(same.out)[0]["verdict"], long_one["verdict"]) << same.out << same.err;
}

TEST_F(RecipeRun, WhatCannotRunHasAVerdictAndAReason) {
  write_file(folder_ / "tests/functional_tests/test_cases/moe/train/model_config.yaml",
             "TEST_TYPE: regular\nMODEL_ARGS:\n  --train-iters: 50\n");
  const Output run =
      recipe("run",
             "  - test_case: [nowhere]\n    products:\n      - environment: [dev]\n        platforms: [dgx_h100]\n"
             "  - test_case: [echo]\n    products:\n      - environment: [lts]\n        platforms: [dgx_h100]\n",
             {"--engine", "replay", "--json", "--output", folder_ / "out"});
  EXPECT_EQ(run.code, 1) << run.err;
  const json outcomes = json::parse(run.out);
  ASSERT_EQ(outcomes.size(), 2U) << run.out;
  EXPECT_EQ(outcomes[0]["verdict"], "INVALID");
  EXPECT_THAT(outcomes[0].dump(), HasSubstr("case nowhere does not exist"));
  EXPECT_NE(outcomes[1]["verdict"], "IDENTICAL") << "there is no golden of lts on dgx_h100";
  EXPECT_THAT(run.err, HasSubstr("warning: golden of echo does not exist"));
}

TEST_F(RecipeRun, NamesOfWorkloadsCannotLeaveTheOutputFolder) {
  std::string head = kHead;
  write_file(folder_ / "recipes/r.yaml", head.replace(head.find("'{test_case}_"), 13, "'../../../x {test_case}_") +
                                             "  - test_case: [echo]\n    products:\n      - environment: [dev]\n"
                                             "        platforms: [dgx_h100]\n");
  const Output run = run_program("assay", {"recipe", "run", folder_ / "recipes/r.yaml", "--engine", "replay", "--json",
                                           "--output", folder_ / "out"});
  ASSERT_EQ(run.code, 0) << run.out << run.err;
  EXPECT_EQ(json::parse(run.out)[0]["name"], "moe/_.._.._.._x_echo_dev_dgx_h100");
}

TEST_F(RecipeRun, StrictRefusesRecipesWithFindings) {
  const std::string products =
      "  - test_case: [echo]\n    products:\n      - environment: [dev]\n        platforms: [dg  x_h100]\n";
  EXPECT_EQ(recipe("list", products, {}).code, 0);
  const Output list = recipe("list", products, {"--strict"});
  EXPECT_EQ(list.code, 1);
  EXPECT_THAT(list.err, HasSubstr("r.yaml:25:21: warning: platform \"dg  x_h100\" is not a known one"));
  EXPECT_EQ(recipe("run", products, {"--strict", "--engine", "replay", "--output", folder_ / "out"}).code, 1);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "out"));
}

TEST_F(RecipeRun, ShardsOfARunAreMergedIntoIt) {
  const auto verdicts = [this](const char* output) {
    std::map<std::string, std::string> found;
    const json report = json::parse(read_file(folder_ / output + "/report.json"));
    for (const json& one : report["cases"]) found[one["name"]] = one["verdict"];
    return found;
  };
  recipe("run", kTwo, {"--engine", "replay", "--output", folder_ / "whole"});
  ASSERT_EQ(verdicts("whole").size(), 2U);
  for (const char* part : {"1", "2"}) {
    const Output shard = recipe("run", kTwo,
                                {"--engine", "replay", "--shard", std::string(part) + "/2", "--durations",
                                 folder_ / "whole", "--output", folder_ / part});
    EXPECT_EQ(shard.code, 0) << shard.err;
    EXPECT_THAT(shard.out, HasSubstr(std::string("shard ") + part + " of 2: 1 of 2 cases"));
  }
  EXPECT_EQ(run_program("assay", {"merge", folder_ / "1", folder_ / "2", "--output", folder_ / "all"}).code, 0);
  EXPECT_EQ(verdicts("all"), verdicts("whole"));

  std::string other = kTwo;
  other.replace(other.find("n_repeat: [2]"), 13, "n_repeat: [3]");
  recipe("run", other,
         {"--engine", "replay", "--shard", "2/2", "--durations", folder_ / "whole", "--output", folder_ / "2b"});
  const Output refused = run_program("assay", {"merge", folder_ / "1", folder_ / "2b", "--output", folder_ / "no"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("different cases")) << "of another recipe";
}

TEST_F(RecipeRun, ThatWasKilledIsGoneOnWithAndAChangedRecipeIsRunAgain) {
  recipe("run", kTwo, {"--engine", "replay", "--output", folder_ / "out"});
  const std::string journal = read_file(folder_ / "out/results.jsonl");
  const size_t first = journal.find("\"event\":\"case_finished\"");
  ASSERT_NE(first, std::string::npos);
  write_file(folder_ / "out/results.jsonl", journal.substr(0, journal.find('\n', first) + 1));
  const Output resumed = run_program("assay", {"recipe", "run", "--resume", folder_ / "out"}, "", folder_.path());
  EXPECT_EQ(resumed.code, 0) << resumed.out << resumed.err;
  EXPECT_THAT(resumed.out, HasSubstr("1 of 2 cases are run again (1 unfinished)"));
  EXPECT_EQ(json::parse(read_file(folder_ / "out/report.json"))["cases"].size(), 2U);

  const auto resume = [this](std::vector<std::string> command) {
    command.insert(command.end(), {"--resume", folder_ / "out"});
    return run_program("assay", command);
  };
  EXPECT_THAT(resume({"recipe", "run"}).out, HasSubstr("0 of 2 cases are run again"));
  std::string other = kTwo;
  other.replace(other.find("n_repeat: [2]"), 13, "n_repeat: [3]");
  write_file(folder_ / "recipes/r.yaml", kHead + other);
  EXPECT_THAT(resume({"recipe", "run"}).out, HasSubstr("1 of 2 cases are run again (1 changed since)"));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "out/cases/moe/echo_lts_dgx_a100/repeat_3/actual.json"));

  const Output wrong = resume({"run"});
  EXPECT_EQ(wrong.code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("made by 'assay recipe run', go on with it by 'assay recipe run --resume'"));
  EXPECT_EQ(resume({"recipe", "run", "--scope", "weekly"}).code, 4);
  EXPECT_EQ(resume({"recipe", "run", "--rerun", "sometimes"}).code, 2);
  EXPECT_EQ(resume({"recipe", "run", "--engine", "buffered"}).code, 2);
}

TEST_F(RecipeRun, RelationsMayJudgeItsWorkloads) {
  const Output run =
      recipe("run", kTwo, {"--engine", "replay", "--metamorphic", "--json", "--output", folder_ / "out"});
  EXPECT_EQ(run.code, 1) << run.err;
  EXPECT_THAT(run.out, HasSubstr("NOT_COMPARABLE")) << "replay computes nothing";
}

TEST_F(RecipeRun, BadCommandLinesEndWithCode2AndErrorsOfARecipeWith1) {
  EXPECT_EQ(run_program("assay", {"recipe"}).code, 2);
  EXPECT_EQ(run_program("assay", {"recipe", "fly"}).code, 2);
  EXPECT_EQ(run_program("assay", {"recipe", "list"}).code, 2);
  EXPECT_EQ(run_program("assay", {"recipe", "list", "/nonexistent.yaml"}).code, 2);
  EXPECT_EQ(run_program("assay", {"recipe", "list", "docs", "--cadence", "hourly"}).code, 2);
  EXPECT_EQ(run_program("assay", {"recipe", "--help"}).code, 0);
  for (const char* command : {"list", "run"}) {
    const Output help = run_program("assay", {"recipe", command, "--help"});
    EXPECT_EQ(help.code, 0);
    EXPECT_LE(std::count(help.out.begin(), help.out.end(), '\n'), 50) << command;
  }
  const Output broken =
      recipe("list", "  - test_case: [echo]\n    products:\n      - environment: [dev]\n        scope: *x\n", {});
  EXPECT_EQ(broken.code, 1) << broken.err;
  EXPECT_THAT(broken.err, HasSubstr("r.yaml:25:"));
}

TEST(MegatronRecipes, AllOfThemExpandWithoutAnError) {
  const char* tree = std::getenv("ASSAY_MEGATRON_TREE");
  if (tree == nullptr) GTEST_SKIP() << "ASSAY_MEGATRON_TREE names no checkout of Megatron-LM";
  const std::string recipes = std::string(tree) + "/tests/test_utils/recipes";
  const Output list = run_program("assay", {"recipe", "list", recipes, "--json"});
  ASSERT_EQ(list.code, 0) << list.err;
  EXPECT_THAT(list.err, HasSubstr("platform \"dg  x_h100\" is not a known one (did you mean 'dgx_h100'?)"));
  const json all = json::parse(list.out);
  size_t inference = 0;
  for (const json& one : all) {
    EXPECT_TRUE(one["error"].is_null()) << one["error"];
    const std::string flavour = one["flavour"];
    if (flavour.starts_with("static") || flavour.starts_with("dyn") || flavour.starts_with("api")) ++inference;
  }
  EXPECT_GE(all.size(), 600U);
  EXPECT_GE(inference, 58U);
}

}  // namespace
}  // namespace assay::tests
