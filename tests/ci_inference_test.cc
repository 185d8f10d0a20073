// assay ci on inference cases: the launch line of Megatron-LM's harness around a script of the test.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include "tests/program.h"

namespace assay::tests {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// What Megatron-LM's static engine writes for one prompt.
constexpr const char* kResult =
    R"({"0": {"input_prompt": "one", "generated_text": " two three", "generated_tokens": [5, 6], "latency": 1.5,
  "tpot": [0.5, 0.25], "logprobs": [-1.5, -0.5, -0.25]}})";

// Stands for the launcher: notes its words, takes its flags off and runs the script with what follows.
constexpr const char* kLauncher = R"(#!/bin/sh
echo "$(basename "$0") $*" >> "$OUTPUT_PATH/launched.txt"
if [ "$1" = -m ]; then shift 2; fi
while :; do case "$1" in --*=*) shift;; --*) shift 2;; *) break;; esac; done
exec sh "$@"
)";

// A script finds in $out where its results go, and in $RESULT what the golden holds.
constexpr const char* kReadsItsWords = R"(
while [ $# -gt 0 ]; do if [ "$1" = --output-path ]; then out=$2; fi; shift; done
)";

class CiInference : public testing::Test {
 protected:
  CiInference() {
    add_case();
    write_file(golden(), kResult);
    write_file(folder_ / "result.json", kResult);
    for (const char* name : {"bin/python", "bin/ft_launcher"}) {
      write_file(folder_ / name, kLauncher);
      fs::permissions(folder_ / name, fs::perms::owner_all);
    }
    ::setenv("PATH", ((folder_ / "bin") + ":" + path_).c_str(), 1);
  }
  ~CiInference() override { ::setenv("PATH", path_.c_str(), 1); }

  void add_case(const std::string& more = "") const {
    write_file(folder_ / "case/model_config.yaml",
               "TEST_TYPE: frozen-start\nMODE: inference\nMODEL_ARGS:\n  --prompts: one\n"
               "  --num-tokens-to-generate: 2\n  --return-log-probs: true\n"
               "  --tokenizer-type: HuggingFaceTokenizer\n  --use-legacy-static-engine: true\n"
               "  --load: ${CHECKPOINT_LOAD_PATH}/model\n  --output-path: ${INFERENCE_OUTPUT_PATH}\n"
               "METRICS: [generated_tokens, logprobs]\n" +
                   more);
  }
  std::string golden() const { return folder_ / "case/golden_values_dev_dgx_h100.json"; }

  // `script`: what it does once it has read its words. `more`: words and options, in place of usual ones of that name.
  Output run(const std::string& script, const std::vector<std::string>& more = {}) const {
    write_file(folder_ / "gpt_static_inference.py", kReadsItsWords + script);
    std::vector<std::string> words = {"ci",
                                      "TRAINING_SCRIPT_PATH=" + (folder_ / "gpt_static_inference.py"),
                                      "TRAINING_PARAMS_PATH=" + (folder_ / "case/model_config.yaml"),
                                      "GOLDEN_VALUES_PATH=" + golden(),
                                      "OUTPUT_PATH=" + (folder_ / "results"),
                                      "TENSORBOARD_PATH=" + (folder_ / "results/tensorboard"),
                                      "CHECKPOINT_SAVE_PATH=" + (folder_ / "save"),
                                      "CHECKPOINT_LOAD_PATH=" + (folder_ / "load"),
                                      "INFERENCE_OUTPUT_PATH=" + values(),
                                      "DATA_PATH=null",
                                      "DATA_CACHE_PATH=" + (folder_ / "cache"),
                                      "ENABLE_LIGHTWEIGHT_MODE=",
                                      "RESULT=" + (folder_ / "result.json"),
                                      "SOME_API_KEY=very-secret-word"};
    for (const std::string& word : more) {
      const std::string key = word.substr(0, word.find('=') + 1);
      std::erase_if(words, [&key](const std::string& usual) { return !key.empty() && usual.starts_with(key); });
    }
    words.insert(words.end(), more.begin(), more.end());
    return run_program("assay", words);
  }
  std::string values() const { return folder_ / "results/golden_values_dev_dgx_h100.json"; }

  TemporaryFolder folder_;
  const std::string path_ = ::getenv("PATH");
};

TEST_F(CiInference, AScriptThatWritesTheGoldenPasses) {
  const Output output =
      run("cp \"$RESULT\" \"$out\"\necho \"$DATA_PATH $CHECKPOINT_LOAD_PATH $SOME_API_KEY $NCCL_PROTO\" > "
          "\"$OUTPUT_PATH/seen.txt\"\n",
          {"GPUS_PER_NODE=3"});
  EXPECT_EQ(output.code, 0) << output.out << output.err;
  EXPECT_THAT(output.out, HasSubstr("IDENTICAL"));
  EXPECT_THAT(read_file(folder_ / "results/launched.txt"),
              AllOf(HasSubstr("python -m torch.distributed.run --nproc_per_node 3 --nnodes 1 "),
                    HasSubstr(folder_ / "gpt_static_inference.py --prompts one --num-tokens-to-generate 2 "),
                    HasSubstr("--load " + (folder_ / "load/model") + " --output-path ")));
  EXPECT_EQ(read_file(folder_ / "results/seen.txt"), "null " + (folder_ / "load") + " very-secret-word simple\n")
      << "all words are exported, as the script does";
  EXPECT_THAT(read_file(values()), HasSubstr("two three"));
  EXPECT_TRUE(fs::exists(folder_ / "results/assay/junit.xml"));
  EXPECT_THAT(output.out + output.err, Not(HasSubstr("very-secret-word")));
  for (const auto& entry : fs::recursive_directory_iterator(folder_ / "results/assay")) {
    if (!entry.is_regular_file()) continue;
    EXPECT_THAT(read_file(entry.path()), Not(HasSubstr("very-secret-word"))) << entry.path();
  }
}

TEST_F(CiInference, AScriptThatWritesSomethingElseFails) {
  const auto fails = [&](const std::string& script, const std::string& verdict) {
    const Output output = run(script);
    EXPECT_EQ(output.code, 1) << script << output.out << output.err;
    EXPECT_THAT(output.out, HasSubstr(verdict)) << script;
  };
  fails("sed 's/5, 6/5, 7/' \"$RESULT\" > \"$out\"\n", "DIVERGED");
  fails("sed 's/-0.25]/-0.75]/' \"$RESULT\" > \"$out\"\n", "DRIFT");
  fails("sed 's/-0.25]/NaN]/' \"$RESULT\" > \"$out\"\n", "INVALID");
  fails("sed 's/\"0\"/\"1\"/' \"$RESULT\" > \"$out\"\n", "INVALID");
  fails("head -c 40 \"$RESULT\" > \"$out\"\n", "INVALID");
  fails(": > \"$out\"\n", "INVALID");
  fails("true\n", "INVALID");
}

TEST_F(CiInference, WhatAnEarlierScriptWroteIsNotTakenForThisOnes) {
  EXPECT_EQ(run("cp \"$RESULT\" \"$out\"\n").code, 0);
  EXPECT_EQ(run("true\n").code, 1);
  EXPECT_FALSE(fs::exists(values())) << "nor left where this one's are looked for";
  EXPECT_TRUE(fs::exists(values() + ".before_1"));
}

TEST_F(CiInference, ResultsGoOverNothingOfTheCase) {
  for (const char* file : {"golden_values_dev_dgx_h100.json", "model_config.yaml"}) {
    const std::string place = folder_.path() / "case" / file;
    const std::string before = read_file(place);
    const Output output = run("sed 's/5, 6/5, 7/' \"$RESULT\" > \"$out\"\n", {"INFERENCE_OUTPUT_PATH=" + place});
    EXPECT_EQ(output.code, 1) << output.out;
    EXPECT_THAT(output.out, HasSubstr("of the case, which results would replace"));
    EXPECT_EQ(read_file(place), before);
  }
}

TEST_F(CiInference, AScriptThatCrashesFailsWithItsLastWords) {
  const Output exits = run("cp \"$RESULT\" \"$out\"\necho 'RuntimeError: no such layer' >&2\nexit 3\n");
  EXPECT_EQ(exits.code, 1);
  EXPECT_THAT(exits.out, AllOf(HasSubstr("CRASHED"), HasSubstr("no such layer")));
  const Output killed = run("kill -SEGV $$\n");
  EXPECT_EQ(killed.code, 1);
  EXPECT_THAT(killed.out, AllOf(HasSubstr("CRASHED"), HasSubstr("SIGSEGV")));
  const Output hangs = run("sleep 100\n", {"--timeout", "60", "--engine-options", R"({"time_limit": 1})"});
  EXPECT_EQ(hangs.code, 1);
  EXPECT_THAT(hangs.out, AllOf(HasSubstr("CRASHED"), HasSubstr("time limit")));
}

TEST_F(CiInference, ALauncherThatIsNotThereIsTheMachines) {
  const Output output = run("true\n", {"--engine-options", R"({"torchrun": ["no_such_launcher_of_ours"]})"});
  EXPECT_EQ(output.code, 3) << output.out;
  EXPECT_THAT(output.out, AllOf(HasSubstr("INFRA"), HasSubstr("no_such_launcher_of_ours")));
  EXPECT_EQ(run("true\n", {"--engine-options", "[1"}).code, 2);
}

TEST_F(CiInference, TheLauncherIsThatOfTheCase) {
  add_case("LAUNCHER: ft_launcher\n");
  EXPECT_EQ(run("cp \"$RESULT\" \"$out\"\n").code, 0);
  EXPECT_THAT(read_file(folder_ / "results/launched.txt"),
              AllOf(HasSubstr("ft_launcher --nproc_per_node 8"), HasSubstr("--max-restarts=3")));
}

TEST_F(CiInference, RepeatsAreThoseOfTheWords) {
  const std::string counts = "echo once >> \"$OUTPUT_PATH/runs.txt\"\n";
  EXPECT_EQ(run(counts + "cp \"$RESULT\" \"$out\"\n", {"N_REPEAT=3"}).code, 0);
  EXPECT_EQ(read_file(folder_ / "results/runs.txt"), "once\nonce\nonce\n");
  const std::string second_differs =
      counts +
      "if [ $(wc -l < \"$OUTPUT_PATH/runs.txt\") = 5 ]; then sed 's/5, 6/5, 7/' \"$RESULT\" > \"$out\"; "
      "else cp \"$RESULT\" \"$out\"; fi\n";
  const Output flaky = run(second_differs, {"N_REPEAT=2"});
  EXPECT_EQ(flaky.code, 1) << flaky.out;
  EXPECT_THAT(flaky.out, HasSubstr("FLAKY"));
  const Output none = run("true\n", {"N_REPEAT=3x"});
  EXPECT_EQ(none.code, 1);
  EXPECT_THAT(none.out, HasSubstr("N_REPEAT '3x'"));
}

// The words with which Megatron-LM's script runs a case and does not compare it.
TEST_F(CiInference, NothingIsComparedWhereTheWordsSaySo) {
  const std::string differs = "sed 's/5, 6/5, 7/' \"$RESULT\" > \"$out\"\n";
  const auto expect = [&](int code, const char* verdict, const std::string& script, std::vector<std::string> words) {
    words.insert(words.end(), {"--compat", "megatron"});
    const Output output = run(script, words);
    EXPECT_EQ(output.code, code) << testing::PrintToString(words) << script << output.out << output.err;
    EXPECT_THAT(output.out, HasSubstr(verdict)) << testing::PrintToString(words) << script;
  };
  for (const char* word : {"ENABLE_LIGHTWEIGHT_MODE=true", "RECORD_CHECKPOINTS=true"}) {
    expect(0, "SKIPPED", differs, {word});
    EXPECT_THAT(read_file(values()), HasSubstr("two three")) << "what was written stays";
    expect(0, "SKIPPED", "true\n", {word});  // nothing is written, nobody would have looked
    expect(0, "SKIPPED", ": > \"$out\"\n", {word});
    expect(1, "CRASHED", differs + "exit 3\n", {word});
  }
  add_case("ENV_VARS:\n  SKIP_PYTEST: 1\n");
  expect(0, "SKIPPED", differs, {});
  add_case("ENV_VARS:\n  ENABLE_LIGHTWEIGHT_MODE: true\n");
  expect(0, "SKIPPED", differs, {});
  add_case("ENV_VARS:\n  SKIP_PYTEST: 0\n");
  expect(1, "DIVERGED", differs, {});
}

TEST_F(CiInference, TheirVerdictIsToldBesideOursByTheGoldenOfTheWords) {
  const std::string other = folder_ / "elsewhere/golden_values_dev_dgx_h100.json";
  write_file(other, kResult);
  write_file(golden(), "{}");  // of the case's folder: nobody asked for it
  const auto theirs = [&](const std::string& script) {
    const Output output = run(script, {"GOLDEN_VALUES_PATH=" + other, "--compat", "megatron"});
    const std::string log = read_file(folder_ / "results/assay/results.jsonl");
    const size_t found = log.find("\"compat\":{\"of\":\"megatron\",\"verdict\":\"");
    EXPECT_NE(found, std::string::npos) << output.out << output.err;
    return found == std::string::npos ? "" : log.substr(found + 37, 6);
  };
  EXPECT_EQ(theirs("cp \"$RESULT\" \"$out\"\n"), "passed");
  EXPECT_EQ(theirs("sed 's/5, 6/5, 7/' \"$RESULT\" > \"$out\"\n"), "failed");
  EXPECT_EQ(run("true\n", {"--compat", "other"}).code, 2);
}

TEST_F(CiInference, ScriptsRunAroundTheProgramWithPermissionAlone) {
  add_case(
      "BEFORE_SCRIPT: export FROM_BEFORE=exported\nAFTER_SCRIPT: echo \"$EXIT_CODE\" > \"$OUTPUT_PATH/after.txt\"\n");
  const std::string script = "echo \"$FROM_BEFORE\" > \"$OUTPUT_PATH/seen.txt\"\ncp \"$RESULT\" \"$out\"\n";
  const Output refused = run(script);
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.out, AllOf(HasSubstr("INVALID"), HasSubstr("a BEFORE_SCRIPT"), HasSubstr("--allow-scripts")));
  const Output allowed = run(script, {"--allow-scripts"});
  EXPECT_EQ(allowed.code, 0) << allowed.out << allowed.err;
  EXPECT_EQ(read_file(folder_ / "results/seen.txt"), "exported\n");
  EXPECT_EQ(read_file(folder_ / "results/after.txt"), "0\n");
  add_case("AFTER_SCRIPT: exit 7\n");
  EXPECT_EQ(run(script, {"--allow-scripts"}).code, 1);
}

TEST_F(CiInference, ValuesGoBesideTheOutputWhereTheWordsDoNotSay) {
  EXPECT_EQ(run("cp \"$RESULT\" \"$out\"\n", {"INFERENCE_OUTPUT_PATH="}).code, 0);
  EXPECT_THAT(read_file(values()), HasSubstr("two three"));
}

TEST_F(CiInference, OneNodeAlone) {
  const Output output = run("true\n", {"NUM_NODES=2"});
  EXPECT_EQ(output.code, 2);
  EXPECT_THAT(output.err, HasSubstr("NUM_NODES 2"));
}

}  // namespace
}  // namespace assay::tests
