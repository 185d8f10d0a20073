// What a case says of the words of its command: script, arguments, limits; and what of them is never shown.
#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "plugins/engines/process/process.h"
#include "plugins/engines/toy_backend/engine_driver.h"
#include "tests/temporary_folder.h"

namespace assay::engines {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
namespace fs = std::filesystem;

// A fake torchrun writes its words to stderr, answers one request and ends as it is told.
class CaseWords : public testing::Test {
 protected:
  CaseWords() {
    std::ofstream(launcher_) << "#!/bin/sh\nfor word; do printf '[%s]' \"$word\" >&2; done\n"
                                "echo '{\"text\": \"it is your_key\"}'\nexit ${FAKE_EXIT:-0}\n";
    fs::permissions(launcher_, fs::perms::owner_all);
  }
  // One request with these facts of the case. What the engine says to it is in outcome_.
  Status ask(json facts, const json& more = json::object()) {
    facts["output"] = folder_.path().string();
    json options = {{"torchrun", {launcher_}}, {"processes", 1}, {"case", facts}, {"folder", folder_.path().string()}};
    options.update(more);
    Result<std::unique_ptr<ProcessEngine>> engine = open_on_toy<ProcessEngine>(&model_, host_, options.dump());
    if (!engine) return engine.status();
    outcome_ = {};
    for (uint64_t i = 0; i < requests_; ++i) {
      if (Status submitted = submit(engine->get(), i, {.text = "p"}); !submitted.ok()) return submitted;
    }
    return drain(engine->get(), &outcome_);
  }
  // The words behind the launcher's own.
  std::string words_for(const json& facts, const json& more = json::object()) {
    const Status done = ask(facts, more);
    EXPECT_TRUE(done.ok()) << done.message();
    const std::string words = file("stderr.txt");
    const size_t end = words.find("[--redirects][3]");
    EXPECT_NE(end, std::string::npos) << words;
    return end == std::string::npos ? "" : words.substr(end + 16);
  }
  std::string file(const std::string& name) const {
    std::ifstream in(folder_.path() / "process" / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void expect_nowhere(const std::string& secret) const {
    for (const auto& entry : fs::recursive_directory_iterator(folder_.path() / "process")) {
      if (!entry.is_regular_file()) continue;
      std::ifstream in(entry.path(), std::ios::binary);
      EXPECT_THAT(std::string(std::istreambuf_iterator<char>(in), {}), Not(HasSubstr(secret))) << entry.path();
    }
    for (const std::string& line : host_.lines()) EXPECT_THAT(line, Not(HasSubstr(secret)));
  }

  const tests::TemporaryFolder folder_;
  const std::string launcher_ = folder_ / "launcher";
  ToyModel model_;
  ToyHost host_{&model_};
  uint64_t requests_ = 1;
  Outcome outcome_;
};

TEST_F(CaseWords, AScriptIsAsManyWordsAsInTraining) {
  EXPECT_EQ(words_for({{"script", "run.py"}, {"model_args", {"--x", "a b"}}}), "[run.py][--x][a b]");
  EXPECT_EQ(words_for({{"script", "run.py  fast"}}), "[run.py][fast]");
  EXPECT_EQ(words_for({{"script", "NeMo_of_ours llm generate"}, {"model_args", {"x=1"}}}),
            "[--no-python][NeMo_of_ours][llm][generate][x=1]");
  std::ofstream(folder_ / "my run.py") << "";
  EXPECT_EQ(words_for({{"script", "my run.py"}}), "[my run.py]") << "a file of that name";
  EXPECT_EQ(words_for({{"script", "nemo llm generate"}}, {{"command", "{launch} own.py"}}), "[own.py]")
      << "what it launches is another script";
  EXPECT_EQ(words_for({{"script", "nemo_of_ours llm"}}, {{"command", {"{launch}", "sh", "-c", "{script} --y"}}}),
            "[--no-python][sh][-c][nemo_of_ours llm --y]")
      << "inside a longer word";
  EXPECT_THAT(ask({{"script", " "}}).message(), HasSubstr("the case has no ASSAY.script"));
}

TEST_F(CaseWords, SecretsOfModelArgsAreShownNowhere) {
  const Status failed =
      ask({{"script", "run.py"}, {"model_args", {"--hf-token", "sesame-1", "--api-key=sesame-2", "--x", "plain-3"}}},
          {{"environment", {{"FAKE_EXIT", "3"}}}});
  EXPECT_EQ(failed.code(), StatusCode::kInternal);
  EXPECT_THAT(failed.message(),
              AllOf(HasSubstr("[--hf-token][***][--api-key=***][--x][plain-3]"), Not(HasSubstr("sesame"))));
  expect_nowhere("sesame");
}

TEST_F(CaseWords, SecretsOfScriptsAreShownNowhere) {
  const Status failed = ask({{"script", "run.py"},
                             {"before_script", "export HF_TOKEN=sesame-1; echo \"is $HF_TOKEN\" >&2"},
                             {"after_script", "echo --password 'sesame 2'"}},
                            {{"environment", {{"FAKE_EXIT", "3"}}}});
  EXPECT_EQ(failed.code(), StatusCode::kInternal);
  EXPECT_THAT(failed.message(), AllOf(HasSubstr("is ***"), Not(HasSubstr("sesame"))));
  EXPECT_THAT(file("stdout.txt"), HasSubstr("--password ***\n"));
  expect_nowhere("sesame");
}

TEST_F(CaseWords, WhatAPromptSaysIsNoSecret) {
  ASSERT_TRUE(
      ask({{"script", "run.py"},
           {"model_args", {"--prompts", "export API_KEY=your_key", "TOKEN=your_key", "--hf-token", "sesame-1"}}})
          .ok());
  ASSERT_EQ(outcome_.finished.count(0), 1U) << outcome_.failed.at(0).message();
  EXPECT_EQ(outcome_.finished.at(0).text, "it is your_key");
  expect_nowhere("sesame");
}

// Of every result, the first one with the quantities of all included.
TEST_F(CaseWords, WhatAResultHoldsBesidesIsHandedOnAsItIsSpelled) {
  const std::string further = R"("generated_text": "x", "big": 123456789012345678901234567890, "small": 1e5)";
  const std::string output = R"({{"0": {{)" + further + R"(}}, "1": {{)" + further + R"(}}, "throughput": [1.5]}})";
  requests_ = 2;
  ASSERT_TRUE(ask({{"name", "case"}}, {{"command", {"printf", "%s", output}}}).ok());
  for (uint64_t i = 0; i < 2; ++i) {
    ASSERT_EQ(outcome_.finished.count(i), 1U);
    EXPECT_THAT(outcome_.finished.at(i).extra,
                AllOf(HasSubstr("\"big\": 123456789012345678901234567890"), HasSubstr("\"small\": 1e5")));
  }
  EXPECT_EQ(json::parse(outcome_.finished.at(0).extra)["throughput"], json::array({1.5}));
}

// The limit is noted beside the command: how much is left of it when that begins depends on the machine.
TEST_F(CaseWords, TheLimitOfACommandIsWhatTheCaseHasLessTheReserve) {
  const auto noted = [&](const json& facts, const json& more) {
    EXPECT_TRUE(ask(facts, more).ok());
    return json::parse(file("command.json"))["time_limit_s"].get<double>();
  };
  EXPECT_EQ(noted({{"script", "run.py"}}, json::object()), 0) << "none";
  EXPECT_EQ(noted({{"script", "run.py"}}, {{"time_limit", 50}}), 50);
  const double left = noted({{"script", "run.py"}, {"time_limit_s", 60}}, json::object());
  EXPECT_GT(left, 0);
  EXPECT_LE(left, 54) << "nine tenths";
  EXPECT_LE(noted({{"script", "run.py"}, {"time_limit_s", 60}}, {{"time_limit", 58}}), 54);
  EXPECT_LE(noted({{"script", "run.py"}, {"time_limit_s", 1000}}, json::object()), 990) << "all but 10 s";
}

}  // namespace
}  // namespace assay::engines
