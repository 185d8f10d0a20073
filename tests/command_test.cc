// The commands that need no run: list, show, compare, tokenize, plugin; usage errors and exit codes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/program.h"

namespace assay::tests {
namespace {

using nlohmann::json;
using testing::HasSubstr;

constexpr const char* kCase = "testcases/moe/moe_10m_licences_bf16_b1";

TEST(Usage, UnknownCommandsAndOptionsEndWithCode2AndOneLine) {
  EXPECT_EQ(run_program("assay", {}).code, 2);
  EXPECT_EQ(run_program("assay", {"fly"}).code, 2);
  const Output option = run_program("assay", {"run", "--no-such-option"});
  EXPECT_EQ(option.code, 2);
  EXPECT_THAT(option.err, HasSubstr("no-such-option"));
  EXPECT_EQ(run_program("assay", {"run", "--out", "x"}).code, 2) << "option names are never abbreviated";
  EXPECT_EQ(run_program("assay", {"run", "/nonexistent"}).code, 2);
  EXPECT_EQ(run_program("assay", {"run", "testcases", "--filter", "name:("}).code, 2);
  EXPECT_EQ(run_program("assay", {"run", "testcases", "--set", "novalue"}).code, 2);
  EXPECT_EQ(run_program("assay", {"run", "testcases", "--backend-options", "fast"}).code, 2);
  EXPECT_EQ(run_program("assay", {"run", "testcases", "--backend-options", "[]"}).code, 2);
  EXPECT_EQ(run_program("assay", {"run", "testcases", "--environment", "../x"}).code, 2);
  EXPECT_EQ(run_program("assay", {"run", "testcases", "--platform", "a/b"}).code, 2);
  for (const char* seconds : {"0", "-1", "nan", "1e300"}) {
    EXPECT_EQ(run_program("assay", {"run", "testcases", "--timeout", seconds}).code, 2) << seconds;
  }
}

TEST(Usage, EveryCommandExplainsItself) {
  for (const char* command : {"run", "list", "show", "compare", "tokenize", "plugin", "record", "review", "accept",
                              "reject", "calibrate", "bench", "merge", "simulate"}) {
    const Output help = run_program("assay", {command, "--help"});
    EXPECT_EQ(help.code, 0) << command;
    EXPECT_THAT(help.out, HasSubstr(std::string("usage: assay ") + command));
    EXPECT_LE(std::count(help.out.begin(), help.out.end(), '\n'), 40) << command << ": help must fit a screen";
  }
}

TEST(Usage, ARunOfNothingEndsWithCode4) {
  const TemporaryFolder folder;
  EXPECT_EQ(run_program("assay", {"run", "testcases", "--filter", "nothing", "--output", folder / "out"}).code, 4);
}

TEST(List, JsonHoldsEveryFieldOfEveryCase) {
  const Output list = run_program("assay", {"list", "testcases", "--json"});
  ASSERT_EQ(list.code, 0) << list.err;
  const json cases = json::parse(list.out);
  ASSERT_GE(cases.size(), 5U);
  for (const json& one : cases) {
    for (const char* field : {"name", "path", "model", "mode", "test_type", "metrics", "engine", "goldens", "error"}) {
      EXPECT_TRUE(one.contains(field)) << field;
    }
    EXPECT_TRUE(one["error"].is_null()) << one.dump();
    const bool buffered = one["name"].get<std::string>().ends_with("_buffered");
    EXPECT_EQ(one["engine"], buffered ? "buffered" : "static_legacy") << "the argument decides";
  }
}

TEST(Show, ACaseShowsItsArgumentsAndItsModel) {
  const Output show = run_program("assay", {"show", kCase});
  EXPECT_EQ(show.code, 0) << show.out << show.err;
  for (const char* part : {"--moe-router-topk", "golden_values_dev_any.json", "num_layers"}) {
    EXPECT_THAT(show.out, HasSubstr(part));
  }
  EXPECT_TRUE(json::accept(run_program("assay", {"show", kCase, "--json"}).out));
}

TEST(Show, WithoutTheWeightsWordsAndPromptsAreShown) {
  const TemporaryFolder folder;
  write_file(
      folder / "case/model_config.yaml",
      "MODE: inference\nTEST_TYPE: regular\nMODEL_ARGS:\n  --load: /nowhere\n  --use-legacy-static-engine: true\n"
      "  --tokenizer-type: NullTokenizer\n  --vocab-size: 100\n  --prompts: hello\n");
  write_file(folder / "case/golden_values_dev_any.json", "{}");
  const Output show = run_program("assay", {"show", folder / "case", "--json"});
  EXPECT_EQ(show.code, 0) << show.out << show.err;
  const json shown = json::parse(show.out);
  EXPECT_EQ(shown["prompts"], json::array({"hello"}));
  EXPECT_THAT(shown["notes"].dump(), HasSubstr("/nowhere does not exist"));
}

TEST(Show, NoWordThatIsSecretByItsOptionOrVariableIsShown) {
  const TemporaryFolder folder;
  write_file(folder / "case/model_config.yaml",
             "MODE: pretraining\nTEST_TYPE: regular\nMODEL_ARGS:\n  --hf-token: sesame-1\n  --wandb: ${MY_API_KEY}\n");
  std::vector<std::string> words = {"show", folder / "case", "--set", "MY_API_KEY=sesame-2"};
  for (const bool as_json : {false, true}) {
    if (as_json) words.push_back("--json");
    const Output show = run_program("assay", words);
    EXPECT_EQ(show.code, 0) << show.err;
    EXPECT_THAT(show.out, HasSubstr("--hf-token"));
    EXPECT_THAT(show.out, testing::Not(HasSubstr("sesame")));
  }
}

TEST(Show, ACheckpointShowsItsTensors) {
  const Output show = run_program("assay", {"show", "--checkpoint", "golden/moe_10m_licences/checkpoint"});
  EXPECT_EQ(show.code, 0) << show.err;
  EXPECT_THAT(show.out, HasSubstr("decoder.layers.mlp.router.weight"));
  EXPECT_EQ(run_program("assay", {"show", "--checkpoint", "/nonexistent"}).code, 2);
}

TEST(Compare, AGoldenAgreesWithItselfAndAPrefixFails) {
  const TemporaryFolder folder;
  const std::string config = std::string(kCase) + "/model_config.yaml";
  const std::string golden = std::string(kCase) + "/golden_values_dev_any.json";
  EXPECT_EQ(run_program("assay", {"compare", golden, golden, "--config", config}).code, 0);

  const Output device = run_program("assay", {"compare", "/dev/zero", golden, "--config", config});
  EXPECT_EQ(device.code, 1);
  EXPECT_THAT(device.out, HasSubstr("/dev/zero is a device"));

  json shortened = json::parse(read_file(std::filesystem::path(ASSAY_SOURCE_DIR) / golden));
  shortened["0"]["generated_text"] = " T";
  write_file(folder / "short.json", shortened.dump());
  const Output prefix = run_program("assay", {"compare", golden, folder / "short.json", "--config", config});
  EXPECT_EQ(prefix.code, 1) << prefix.out;
  EXPECT_THAT(prefix.out, HasSubstr("generated_text"));

  json wrong = json::parse(read_file(std::filesystem::path(ASSAY_SOURCE_DIR) / golden));
  wrong["1"]["generated_tokens"][7] = 99;
  write_file(folder / "wrong.json", wrong.dump());
  const Output token = run_program("assay", {"compare", golden, folder / "wrong.json", "--config", config});
  EXPECT_EQ(token.code, 1);
  EXPECT_THAT(token.out, HasSubstr("DIVERGED"));
  EXPECT_THAT(token.out, HasSubstr("99"));

  EXPECT_EQ(run_program("assay", {"compare", golden, folder / "none.json", "--config", config}).code, 1);
  EXPECT_EQ(run_program("assay", {"compare", golden, "--config", config}).code, 2);
}

TEST(Tokenize, TextGoesToIdsAndBack) {
  const std::vector<std::string> words = {"tokenize",
                                          "--tokenizer-type",
                                          "TikTokenizer",
                                          "--tokenizer-model",
                                          "golden/moe_10m_licences/vocab.json",
                                          "--vocab-size",
                                          "4096",
                                          "--tiktoken-num-special-tokens",
                                          "64"};
  const std::string line = "{\"text\":\"GNU General Public License \xC3\xA9\"}\n";
  const Output ids = run_program("assay", words, line);
  ASSERT_EQ(ids.code, 0) << ids.err;
  auto decode = words;
  decode.emplace_back("--decode");
  EXPECT_EQ(json::parse(run_program("assay", decode, ids.out).out), json::parse(line));
  const Output broken = run_program("assay", words, line + "{\"text\":\"\\ud800\"}\n");
  EXPECT_EQ(broken.code, 1);
  EXPECT_THAT(broken.err, HasSubstr("line 2"));
}

TEST(Plugin, AllPluginsOfThisBuildAreInOrder) {
  const Output doctor = run_program("assay", {"plugin", "doctor"});
  EXPECT_EQ(doctor.code, 0) << doctor.out;
  const Output list = run_program("assay", {"plugin", "list"});
  EXPECT_THAT(list.out, HasSubstr("metrics: throughput, tpot, latency"));
  for (const char* name :
       {"engine static_legacy", "engine buffered", "engine replay", "backend cpu", "backend reference",
        "comparator generated_text", "comparator generated_tokens", "comparator logprobs"}) {
    EXPECT_THAT(list.out, HasSubstr(name));
  }
}

}  // namespace
}  // namespace assay::tests
