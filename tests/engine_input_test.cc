// What an engine cannot run: one clear line that names it; the other requests finish.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/program.h"

namespace assay::tests {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;

const char* const kBuffered = "testcases/moe/moe_10m_licences_bf16_buffered";
const char* const kStatic = "testcases/moe/moe_10m_licences_bf16_b4";

struct Changes {
  std::string base = kBuffered;
  std::vector<std::string> prompts = {};                            // instead of those of the case
  std::vector<std::pair<std::string, std::string>> arguments = {};  // replaced or added; a value of "-": taken away
  std::string script = {};                                          // ASSAY.script
};

struct Ran {
  json verdict;
  json actual;
};

Ran run_changed(const Changes& changes) {
  const TemporaryFolder folder;
  const fs::path source = fs::path(ASSAY_SOURCE_DIR) / changes.base;
  std::string config = read_file(source / "model_config.yaml");
  std::vector<std::pair<std::string, std::string>> arguments = changes.arguments;
  if (!changes.prompts.empty()) {
    std::string lines;
    for (const std::string& prompt : changes.prompts) lines += json{{"text", prompt}}.dump() + "\n";
    write_file(folder.path() / "prompts.jsonl", lines);
    arguments.emplace_back("--prompt-file", (folder.path() / "prompts.jsonl").string());
  }
  for (const auto& [name, value] : arguments) {
    const size_t at = config.find("  " + name + ":");
    if (at != std::string::npos) config.erase(at, config.find('\n', at) + 1 - at);
    if (value != "-") config.insert(config.find("METRICS:"), "  " + name + ": " + value + "\n");
  }
  if (!changes.script.empty()) config += "  script: " + changes.script + "\n";
  write_file(folder.path() / "case/model_config.yaml", config);
  fs::copy_file(source / "golden_values_dev_any.json", folder.path() / "case/golden_values_dev_any.json");
  const Output run = run_program("assay", {"run", folder / "case", "--json", "--output", folder / "out"});
  const json cases = json::parse(run.out, nullptr, false);
  if (!cases.is_array() || cases.size() != 1) {
    ADD_FAILURE() << run.out << run.err;
    return {};
  }
  Ran ran{cases[0], json()};
  if (fs::exists(ran.verdict.value("actual", ""))) {
    ran.actual = json::parse(read_file(ran.verdict["actual"].get<std::string>()), nullptr, false);
  }
  for (const auto& entry : fs::recursive_directory_iterator(folder.path() / "out")) {
    if (entry.path().filename() == "actual.json") ran.actual = json::parse(read_file(entry.path()), nullptr, false);
  }
  return ran;
}

void expect_invalid(const Ran& ran, const std::string& expected) {
  EXPECT_EQ(ran.verdict["verdict"], "INVALID") << ran.verdict.dump(1);
  const std::string reason = ran.verdict["reason"];
  EXPECT_THAT(reason, HasSubstr(expected));
  EXPECT_EQ(std::count(reason.begin(), reason.end(), '\n'), 0) << reason;
}

const std::string kGood = "the work is licensed";

struct BadRequest {
  const char* what;
  Changes changes;       // request 1 of three cannot run
  std::string expected;  // in the reason
};

TEST(EngineInput, ARequestThatCannotRunIsNamedAndTheOthersFinish) {
  std::string hundred;
  for (int i = 0; i < 100; ++i) hundred += "licence ";
  const std::vector<BadRequest> table = {
      {"empty prompt", {.prompts = {kGood, "", kGood}}, "request 1: prompt has no tokens"},
      {"empty prompt, static", {.base = kStatic, .prompts = {kGood, "", kGood}}, "request 1: prompt has no tokens"},
      {"over the limit",
       {.prompts = {kGood, hundred, kGood}, .arguments = {{"--inference-max-seq-length", "95"}}},
       "request 1: prompt of"},
      {"prompt and new tokens over the limit",
       {.prompts = {kGood, hundred, kGood}, .arguments = {{"--inference-max-seq-length", "150"}}},
       "is over the limit of 150 tokens; raise --inference-max-seq-length"},
      {"larger than the buffer",
       {.prompts = {kGood, hundred, kGood},
        .arguments = {{"--inference-dynamic-batching-buffer-size-gb", "0.0005"},
                      {"--inference-dynamic-batching-block-size", "16"}}},
       "tokens, the KV buffer holds"},
      {"larger than a step",
       {.prompts = {kGood, hundred, kGood},
        .arguments = {{"--enable-chunked-prefill", "-"},
                      {"--inference-dynamic-batching-max-tokens", "-"},
                      {"--inference-max-tokens", "64"}}},
       "tokens is over the 64 of a step; raise --inference-dynamic-batching-max-tokens or give --enable-chunked"},
      {"unknown special token",
       {.prompts = {kGood, "a <SPECIAL_64> b", kGood}},
       "request 1: prompt names the special token <SPECIAL_64>, which the tokenizer does not have"},
      {"unknown special token, static",
       {.base = kStatic, .prompts = {kGood, "a <SPECIAL_64> b", kGood}},
       "request 1: prompt names the special token <SPECIAL_64>"},
  };
  for (const BadRequest& bad : table) {
    SCOPED_TRACE(bad.what);
    const Ran ran = run_changed(bad.changes);
    expect_invalid(ran, bad.expected);
    EXPECT_TRUE(ran.actual.contains("0") && ran.actual.contains("2")) << ran.actual.dump().substr(0, 200);
    EXPECT_FALSE(ran.actual.contains("1"));
  }
}

TEST(EngineInput, AnArgumentThatMakesNoSenseIsNamed) {
  const auto with = [](const char* name, const char* value) { return Changes{.arguments = {{name, value}}}; };
  const char* const dynamic = "gpt_dynamic_inference.py";
  const std::vector<std::pair<Changes, std::string>> table = {
      {with("--inference-dynamic-batching-buffer-size-gb", "1e-9"), "is less than one block of 256 tokens"},
      {with("--inference-dynamic-batching-buffer-size-gb", "-1"), "--inference-dynamic-batching-buffer-size-gb -1"},
      {with("--inference-dynamic-batching-buffer-size-gb", "nan"), "finite number"},
      {with("--inference-dynamic-batching-block-size", "0"), "--inference-dynamic-batching-block-size 0 is below 1"},
      {with("--inference-dynamic-batching-max-tokens", "0"), "--inference-dynamic-batching-max-tokens 0 is below 1"},
      {with("--inference-max-tokens", "-3"), "--inference-dynamic-batching-max-tokens"},
      {with("--inference-max-requests", "0"), "--inference-max-requests 0 is below 1"},
      {{.arguments = {{"--incoming-requests-per-sec", "inf"}}, .script = dynamic}, "finite number"},
      {{.arguments = {{"--incoming-requests-per-sec", "nan"}}, .script = dynamic}, "finite number"},
      {{.arguments = {{"--stop-words", "<|no_such_token|>"}}, .script = dynamic}, "stop word '<|no_such_token|>'"},
      {{.arguments = {{"--termination-id", "99999"}}, .script = dynamic}, "termination_id 99999 is outside"},
  };
  for (const auto& [changes, expected] : table) expect_invalid(run_changed(changes), expected);
}

TEST(EngineInput, PromptsAtTheEdgesRun) {
  // Equal ones, one of one token, and one that is exactly as long as allowed.
  for (const char* base : {kBuffered, kStatic}) {
    const Ran ran =
        run_changed({.base = base, .prompts = {kGood, kGood, "a"}, .arguments = {{"--num-tokens-to-generate", "5"}}});
    ASSERT_EQ(ran.actual.size(), 3U) << ran.verdict.dump(1);
    EXPECT_EQ(ran.actual["0"]["generated_tokens"], ran.actual["1"]["generated_tokens"]);
    EXPECT_EQ(ran.actual["0"]["logprobs"], ran.actual["1"]["logprobs"]);
    EXPECT_EQ(ran.actual["2"]["generated_tokens"].size(), 5U);
    EXPECT_EQ(ran.actual["2"]["logprobs"].size(), 5U) << "a prompt of one token has no logprobs of its own";
    EXPECT_TRUE(ran.actual["0"].contains("engine_counters")) << base;
    const size_t prompt = ran.actual["0"]["logprobs"].size() - 5 + 1;
    const Ran exact = run_changed(
        {.base = base,
         .prompts = {kGood},
         .arguments = {{"--num-tokens-to-generate", "5"}, {"--inference-max-seq-length", std::to_string(prompt + 5)}}});
    EXPECT_EQ(exact.actual["0"]["logprobs"], ran.actual["0"]["logprobs"]);
    const Ran none =
        run_changed({.base = base, .prompts = {kGood, "a"}, .arguments = {{"--num-tokens-to-generate", "0"}}});
    EXPECT_EQ(none.actual["0"]["generated_tokens"], json::array());
    EXPECT_EQ(none.actual["0"]["logprobs"].size(), prompt - 1);
    EXPECT_EQ(none.actual["1"]["generated_tokens"], json::array());
  }
}

TEST(EngineInput, ADynamicResultIsWrittenAsTheDynamicScriptWritesIt) {
  Changes changes = {.prompts = {kGood, "a", kGood, "the licence", kGood},
                     .arguments = {{"--num-tokens-to-generate", "6"},
                                   {"--output-every-n-results", "3"},
                                   {"--suspend-resume-interval", "2"},
                                   {"--rl-kv-cache-management-mode", "recompute"}},
                     .script = "gpt_dynamic_inference.py"};
  const json actual = run_changed(changes).actual;
  ASSERT_TRUE(actual.contains("0") && actual.contains("3") && actual.contains("4")) << actual.dump().substr(0, 300);
  EXPECT_EQ(actual.size(), 3U) << "every third one and the last";
  const json& first = actual["0"];
  EXPECT_TRUE(first["top_n_logprobs"].is_null());
  EXPECT_EQ(first["generated_logprobs"].size(), 6U);
  EXPECT_EQ(first["prompt_logprobs"].size() + 6, first["logprobs"].size());
  EXPECT_EQ(first["step_count"], actual["4"]["step_count"]);
  EXPECT_GT(first["ttft"], 0.0);
  EXPECT_FALSE(first.contains("tpot"));
  EXPECT_GT(first["engine_counters"]["preemptions"], 0) << "suspended";
  changes.arguments.resize(1);
  changes.script = "";
  const json whole = run_changed(changes).actual;
  EXPECT_EQ(whole.size(), 5U);
  EXPECT_EQ(whole["0"]["generated_tokens"], first["generated_tokens"]);
  EXPECT_EQ(whole["0"]["logprobs"], first["logprobs"]) << "bit for bit";
}

}  // namespace
}  // namespace assay::tests
