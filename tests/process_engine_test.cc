// Engine process as a user runs it: verdicts of good and bad commands, nothing left behind, nothing told.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/program.h"

extern char** environ;  // NOLINT: POSIX names it

namespace assay::tests {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

const std::string kMisbehaving = ASSAY_BINARY_DIR "/bin/misbehaving_program";

constexpr const char* kGolden =
    R"({"0": {"input_prompt": "one", "generated_text": " two three", "generated_tokens": [5, 6], "latency": 1.5,
  "logprobs": [-1.5, -0.5, -0.25]}})";

constexpr const char* kConfig = R"(MODE: inference
TEST_TYPE: frozen-start
MODEL_ARGS:
  --prompts: one
  --num-tokens-to-generate: 2
  --return-log-probs: true
  --deterministic-mode: true
  --tokenizer-type: HuggingFaceTokenizer
  --output-path: ${INFERENCE_OUTPUT_PATH}
METRICS:
- generated_tokens
- logprobs
)";

// Processes that wrote NUMBER.pid into the folder and still run.
std::vector<int> living(const fs::path& folder) {
  std::vector<int> pids;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() != ".pid") continue;
    const std::string pid = entry.path().stem();
    const std::string stat = read_file("/proc/" + pid + "/stat");
    const size_t end = stat.rfind(')');
    if (end != std::string::npos && stat.substr(end + 2, 1) != "Z") pids.push_back(std::stoi(pid));
  }
  return pids;
}

size_t noted(const fs::path& folder) {
  size_t count = 0;
  for (const auto& entry : fs::directory_iterator(folder)) count += entry.path().extension() == ".pid" ? 1 : 0;
  return count;
}

bool eventually(const std::function<bool()>& what) {
  for (int i = 0; i < 1000; ++i) {
    if (what()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

class ProcessEngine : public testing::Test {
 protected:
  ProcessEngine() {
    write_file(folder_ / "case/model_config.yaml", kConfig);
    write_file(folder_ / "case/golden_values_dev_any.json", kGolden);
    fs::create_directories(pids_);
  }

  std::vector<std::string> words(const json& options, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> all = {"run",          folder_ / "case", "--engine", "process",      "--engine-options",
                                    options.dump(), "--json",         "--output", folder_ / "out"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  json run(const json& options, const std::vector<std::string>& more = {}) {
    fs::remove_all(folder_.path() / "out");  // a run is not replaced
    output_ = run_program("assay", words(options, more));
    const json cases = json::parse(output_.out, nullptr, false);
    EXPECT_TRUE(cases.is_array() && cases.size() == 1) << output_.out << output_.err;
    return cases.is_array() && cases.size() == 1 ? cases[0] : json{{"verdict", "?"}, {"reason", ""}};
  }
  // A script that sh runs; its braces are no template variables.
  json script(const std::string& text, const std::vector<std::string>& arguments = {}) const {
    std::string escaped;
    for (const char c : text) escaped += c == '{' || c == '}' ? std::string(2, c) : std::string(1, c);
    std::vector<std::string> command = {"sh", "-c", escaped, "sh"};
    command.insert(command.end(), arguments.begin(), arguments.end());
    return {{"command", command}};
  }
  void expect(const json& seen, const std::string& verdict, const std::string& reason) {
    EXPECT_EQ(seen["verdict"], verdict) << seen.dump(1);
    const std::string text = seen["reason"];
    EXPECT_THAT(text, HasSubstr(reason));
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
    EXPECT_LT(text.size(), 1500U);
    EXPECT_THAT(living(pids_), IsEmpty());
  }

  const TemporaryFolder folder_;
  const fs::path pids_ = folder_.path() / "pids";
  const std::string golden_ = folder_ / "case/golden_values_dev_any.json";
  Output output_;
};

TEST_F(ProcessEngine, IsJudgedByTheGoldenWhateverWayItAnswers) {
  expect(run(script("cat \"$1\"", {golden_})), "IDENTICAL", "");
  expect(run(script("cp \"$1\" \"$2\"", {golden_, "{output}"})), "IDENTICAL", "");
  EXPECT_EQ(output_.code, 0);
  expect(run(script("for last; do :; done; cp \"$1\" \"$last\"", {golden_, "{model_args}"})), "IDENTICAL", "");
  expect(run(script("echo '{\"tokens\": [5, 6], \"text\": \" two three\", \"prompt_logprobs\": [-1.5], \"logprobs\": "
                    "[-0.5, -0.25]}'")),
         "IDENTICAL", "");
  EXPECT_TRUE(fs::exists(folder_ / "out/cases/case/process/command.json"));
  EXPECT_TRUE(fs::exists(folder_ / "out/cases/case/actual.json"));
}

TEST_F(ProcessEngine, WhatTheOutputLacksCannotBeCompared) {
  expect(run(script("echo '{\"tokens\": [5, 6], \"text\": \" two three\"}'")), "NOT_COMPARABLE", "logprobs");
  EXPECT_EQ(output_.code, 1);
}

TEST_F(ProcessEngine, ATokenThatDiffersIsDivergedAsNothingCanBeForced) {
  expect(run(script("echo '{\"tokens\": [5, 7], \"text\": \" two four\", \"prompt_logprobs\": [-1.5], \"logprobs\": "
                    "[-0.5, -0.25]}'")),
         "DIVERGED", "");
}

TEST_F(ProcessEngine, NumbersThatAreNoneAreInvalid) {
  expect(run(script("echo '{\"tokens\": [5, 6], \"text\": \" two three\", \"prompt_logprobs\": [-1.5], \"logprobs\": "
                    "[NaN, -0.25]}'")),
         "INVALID", "NaN");
}

TEST_F(ProcessEngine, BadOutputIsInvalidAndNamesItsPlace) {
  const std::vector<std::pair<std::string, std::string>> all = {
      {"true", "stdout of the command is empty"},
      {"exec >&-", "stdout of the command is empty"},
      {"echo 'Traceback (most recent call last):'", "line 1, character 1: no valid JSON: \"Traceback"},
      {"head -c 100 \"$0\" | head -c 60; printf '{\"0\": {\"generated_tokens\": [5,'", "stdout of the command"},
      {"printf '{\"text\": \"\\377\\376\"}'", "invalid UTF-8"},
      {"echo '{\"tokens\": \"5 6\"}'", "line 1"},
      {"echo '{\"id\": 3, \"tokens\": [5]}'", "request \"3\" was not asked for; asked for: 0"},
      {"echo '{\"tokens\": [5]}'; echo '{\"tokens\": [5]}'", "line 2: is one more than the 1 requests"},
      {"echo '{\"id\": 0, \"error\": \"prompt too long\"}'", "the command says: prompt too long"},
  };
  for (const auto& [text, reason] : all) expect(run(script(text)), "INVALID", reason);
}

TEST_F(ProcessEngine, BadEndsAreCrashesWithTheLastWords) {
  expect(run(script("echo 'out of luck' >&2; exit 3")), "CRASHED", "exit code 3; end of its stderr: out of luck");
  expect(run({{"command", {kMisbehaving, "die", "11"}}}), "CRASHED", "SIGSEGV");
  expect(run({{"command", {kMisbehaving, "flood"}}, {"output_limit", 1000000}}), "CRASHED", "were written to stdout");
  EXPECT_LE(fs::file_size(folder_ / "out/cases/case/process/stdout.txt"), 1000000U);
}

TEST_F(ProcessEngine, ACommandThatIsNotThereIsTheMachines) {
  expect(run({{"command", "no_such_program_of_ours {output}"}}), "INFRA", "command not found");
  EXPECT_EQ(output_.code, 3);
}

TEST_F(ProcessEngine, AnUnknownVariableIsInvalid) {
  expect(run({{"command", "x {outputs}"}}), "INVALID",
         "there is no template variable {outputs} (did you mean 'output'?); known: {case}");
}

TEST_F(ProcessEngine, LimitsOfTheCaseHoldForTheWholeTree) {
  write_file(folder_ / "case/model_config.yaml",
             std::string(kConfig) + "ASSAY:\n  timeout: 60s\n  memory_limit: 100MB\n");
  expect(run({{"command", {kMisbehaving, "family", pids_.string()}}, {"time_limit", 2}}), "CRASHED",
         "time limit of 2.0 s reached");
  EXPECT_GE(noted(pids_), 7U);
  expect(run({{"command", {kMisbehaving, "eat_in_child", "3000"}}}), "CRASHED", "memory limit of 0.10 GB reached");
}

// Nine tenths of ASSAY.timeout, so that the command's own words come before those of the case's end. The limit is noted
// beside the command: how much is left of it when that begins, and which end comes first, depends on the machine.
TEST_F(ProcessEngine, TheTimeoutOfTheCaseLimitsItsCommand) {
  const auto limit = [&](const std::string& timeout, const json& more) {
    write_file(folder_ / "case/model_config.yaml", kConfig + timeout);
    json options = script("cat \"$1\"", {golden_});
    options.update(more);
    expect(run(options), "IDENTICAL", "");
    return json::parse(read_file(folder_ / "out/cases/case/process/command.json"))["time_limit_s"].get<double>();
  };
  const double left = limit("ASSAY:\n  timeout: 60s\n", json::object());
  EXPECT_GT(left, 0);
  EXPECT_LE(left, 54);
  EXPECT_EQ(limit("ASSAY:\n  timeout: 3600s\n", {{"time_limit", 50}}), 50) << "the option's, which is smaller";
}

// A program that died twice and was begun anew answers in the end: that is told with the verdict, and does not change
// it.
TEST_F(ProcessEngine, RestartsByTheLauncherAreToldWithTheVerdict) {
  const std::string launcher = folder_ / "launcher";
  write_file(launcher,
             "#!/bin/sh\nfor i in 3 2; do echo \"$i/3 attempts left; will restart worker group\" >&2; done\ncat '" +
                 golden_ + "'\n");
  fs::permissions(launcher, fs::perms::owner_all);
  const json seen = run({{"command", "{launch} run.py"}, {"ft_launcher", {launcher}}, {"launcher", "ft_launcher"}});
  expect(seen, "IDENTICAL", "");
  for (const char* file : {"out/results.jsonl", "out/report.json"}) {
    EXPECT_THAT(read_file(folder_ / file), HasSubstr("the launcher restarted the program 2 times")) << file;
  }
  EXPECT_THAT(read_file(folder_ / "out/cases/case/engine.log"), HasSubstr("restart 2: 2/3 attempts left"));
}

TEST_F(ProcessEngine, WhatIsLeftBehindIsEndedAndNoted) {
  const std::string leave = kMisbehaving + " leave " + pids_.string() + "; cat \"$1\"";
  expect(run(script(leave, {golden_})), "IDENTICAL", "");
  EXPECT_EQ(noted(pids_), 2U);
  EXPECT_THAT(read_file(folder_ / "out/cases/case/engine.log"),
              HasSubstr("2 processes were left behind and were ended"));
}

// A relation asks one session of the engine twice; the host numbers the requests of the second call on.
TEST_F(ProcessEngine, ACommandThatWritesItsIdIsRightInEveryCallOfARelation) {
  std::string config = kConfig;
  config.resize(config.find("METRICS:"));
  write_file(folder_ / "case/model_config.yaml", config + "ASSAY:\n  metamorphic: [repeated_call]\n");
  json options = script(
      "printf '{\"id\": %s, \"tokens\": [5, 6], \"text\": \" two three\", \"prompt_logprobs\": [-1.5], "
      "\"logprobs\": [-0.5, -0.25]}' \"$1\"",
      {"{id}"});
  options["per_request"] = true;
  expect(run(options), "IDENTICAL", "");
}

TEST_F(ProcessEngine, RepeatsAreComparedWithEachOther) {
  expect(run(script("cat \"$1\"", {golden_}), {"--repeat", "2"}), "IDENTICAL", "");
  EXPECT_TRUE(fs::exists(folder_ / "out/cases/case/repeat_2/process/stdout.txt"));
  const std::string every_other = "if [ -e \"$2\" ]; then echo nonsense; else touch \"$2\"; cat \"$1\"; fi";
  expect(run(script(every_other, {golden_, folder_ / "seen"}), {"--repeat", "2"}), "FLAKY", "");
}

// Starts assay, waits until the whole family is there, sends the signal.
void signal_a_run(const std::vector<std::string>& words, const fs::path& pids, int signal, int* status) {
  std::vector<std::string> owned = words;
  owned.insert(owned.begin(), ASSAY_BINARY_DIR "/bin/assay");
  std::vector<char*> pointers;
  for (std::string& word : owned) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", 1, 0);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", 1, 0);
  pid_t child = 0;
  ASSERT_EQ(posix_spawn(&child, pointers[0], &actions, nullptr, pointers.data(), environ), 0);
  posix_spawn_file_actions_destroy(&actions);
  EXPECT_TRUE(eventually([&] { return noted(pids) >= 7; }));
  ::kill(child, signal);
  ::waitpid(child, status, 0);
}

TEST_F(ProcessEngine, TheDeathOfTheRunnerLeavesNoOrphan) {
  int status = 0;
  signal_a_run(words({{"command", {kMisbehaving, "family", pids_.string()}}}), pids_, SIGKILL, &status);
  EXPECT_TRUE(eventually([&] { return living(pids_).empty(); })) << living(pids_).size() << " live on";
}

TEST_F(ProcessEngine, AnInterruptedRunLeavesNoOrphanAndEnds) {
  int status = 0;
  signal_a_run(words({{"command", {kMisbehaving, "family", pids_.string()}}}), pids_, SIGINT, &status);
  EXPECT_TRUE(eventually([&] { return living(pids_).empty(); })) << living(pids_).size() << " live on";
}

TEST_F(ProcessEngine, SecretsAreInNoFileAndOnNoScreen) {
  ::setenv("SOME_SERVICE_KEY", "sEcReT-one-1", 1);
  json options = script("echo \"$SOME_SERVICE_KEY $OTHER_TOKEN $CASE_PASSWORD $1\" >&2; exit 3", {"--x=sEcReT-one-1"});
  options["environment"] = {{"OTHER_TOKEN", "sEcReT\"two"}};
  write_file(folder_ / "case/model_config.yaml", "ENV_VARS:\n  CASE_PASSWORD: sEcReT-three\n" + std::string(kConfig));
  expect(run(options, {"--set", "SET_API=sEcReT-four"}), "CRASHED", "end of its stderr: *** *** *** --x=***");
  ::unsetenv("SOME_SERVICE_KEY");
  EXPECT_THAT(output_.out + output_.err, Not(HasSubstr("sEcReT")));
  for (const auto& entry : fs::recursive_directory_iterator(folder_ / "out")) {
    if (!entry.is_regular_file()) continue;
    EXPECT_THAT(read_file(entry.path()), Not(HasSubstr("sEcReT"))) << entry.path();
  }
  const Output shown = run_program("assay", {"show", folder_ / "case", "--json", "--set", "SET_API=sEcReT-four"});
  EXPECT_THAT(shown.out, AllOf(HasSubstr("CASE_PASSWORD"), Not(HasSubstr("sEcReT"))));
}

}  // namespace
}  // namespace assay::tests
