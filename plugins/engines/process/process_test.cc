#include "plugins/engines/process/process.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/command/process_table.h"
#include "plugins/engines/toy_backend/engine_driver.h"
#include "tests/temporary_folder.h"

namespace assay::engines {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
namespace fs = std::filesystem;

const std::string kMisbehaving = ASSAY_BINARY_DIR "/bin/misbehaving_program";

class Process : public testing::Test {
 protected:
  // `script` is run by sh with the template variables as $1, $2 ...
  Status open_script(const std::string& script, const std::vector<std::string>& words = {"{prompts}", "{output}"},
                     json options = json::object()) {
    std::vector<std::string> command = {"sh", "-c", escaped(script), "sh"};
    command.insert(command.end(), words.begin(), words.end());
    options["command"] = command;
    return open(std::move(options));
  }
  Status open(json options) {
    if (!options.contains("case")) options["case"] = {{"output", folder_.string()}, {"name", "a/case"}};
    Result<std::unique_ptr<ProcessEngine>> engine = open_on_toy<ProcessEngine>(&model_, host_, options.dump());
    if (!engine) return engine.status();
    engine_ = *std::move(engine);
    return {};
  }
  static std::string escaped(const std::string& script) {
    std::string text;
    for (const char c : script) text += c == '{' || c == '}' ? std::string(2, c) : std::string(1, c);
    return text;
  }
  void submit_texts(const std::vector<std::string>& texts) {
    for (size_t i = 0; i < texts.size(); ++i) ASSERT_TRUE(submit(engine_.get(), i, {.text = texts[i]}).ok());
  }
  Outcome run(const std::vector<std::string>& texts) {
    submit_texts(texts);
    Outcome outcome;
    const Status done = drain(engine_.get(), &outcome);
    EXPECT_TRUE(done.ok()) << done.message();
    return outcome;
  }
  Status failure(const std::vector<std::string>& texts = {"p"}) {
    submit_texts(texts);
    Outcome outcome;
    return drain(engine_.get(), &outcome);
  }
  std::string file(const std::string& name) const {
    std::ifstream in(folder_ / "process" / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::vector<pid_t> living() const {
    command::ProcessTable table;
    table.read();
    std::vector<pid_t> pids;
    for (size_t i = 0; i < table.size(); ++i) {
      if (!table.zombie(i) && fs::exists(folder_ / (std::to_string(table.pid(i)) + ".pid"))) {
        pids.push_back(table.pid(i));
      }
    }
    return pids;
  }

  const tests::TemporaryFolder temporary_;
  const fs::path& folder_ = temporary_.path();
  ToyModel model_;
  ToyHost host_{&model_};
  std::unique_ptr<ProcessEngine> engine_;
};

TEST_F(Process, AnswersFromTheFileThatTheCommandWrites) {
  ASSERT_TRUE(open_script("echo chatter; echo '{\"id\": 0, \"text\": \"a\", \"tokens\": [1]}' > \"$2\"; "
                          "echo '{\"id\": 1, \"text\": \"b\", \"tokens\": [2, 3]}' >> \"$2\"")
                  .ok());
  const Outcome outcome = run({"p", "q"});
  EXPECT_EQ(outcome.finished.at(0).text, "a");
  EXPECT_EQ(outcome.finished.at(0).prompt, "p");
  EXPECT_THAT(outcome.finished.at(1).tokens, ElementsAre(2, 3));
  EXPECT_EQ(file("stdout.txt"), "chatter\n");
}

TEST_F(Process, AnswersFromStdoutWhereNoFileIsNamed) {
  ASSERT_TRUE(open_script("echo '{\"text\": \"a\"}'", {}).ok());
  EXPECT_EQ(run({"p"}).finished.at(0).text, "a");
}

TEST_F(Process, HandsThePromptsOverAsLines) {
  ASSERT_TRUE(
      open_script("sed 's/\"text\"/\"said\"/; s/$/ /' \"$1\" >&2; echo '{\"text\": \"a\"}'; echo '{\"text\": \"b\"}'",
                  {"{prompts}"})
          .ok());
  run({"line\n\"q\" \xc3\xa9", "q"});
  std::ifstream in(folder_ / "process/prompts.jsonl");
  std::string line;
  std::getline(in, line);
  const json first = json::parse(line);
  EXPECT_EQ(first["id"], 0);
  EXPECT_EQ(first["text"], "line\n\"q\" \xc3\xa9");
  EXPECT_EQ(first["max_new_tokens"], 8);
  EXPECT_EQ(first["seed"], 1234);
  EXPECT_EQ(first["top_k"], 1);
}

TEST_F(Process, OneCommandARequestWhereThatIsAskedFor) {
  ASSERT_TRUE(
      open_script("printf '{\"text\": \"%s %s\"}' \"$1\" \"$2\"", {"{id}", "{prompt}"}, {{"per_request", true}}).ok());
  submit_texts({"p", "q"});
  std::vector<EngineEvent> events;
  ASSERT_TRUE(engine_->step(&events).ok());
  EXPECT_EQ(events.size(), 1U);
  EXPECT_EQ(engine_->pending(), 1U);
  Outcome outcome;
  ASSERT_TRUE(drain(engine_.get(), &outcome).ok());
  EXPECT_EQ(outcome.finished.at(1).text, "1 q");
  EXPECT_EQ(file("0/stdout.txt"), "{\"text\": \"0 p\"}");
}

// The host numbers requests on and on; the command knows them by their place in its call, in every word it gets.
TEST_F(Process, EveryCallOfASessionTellsTheSameIds) {
  ASSERT_TRUE(open_script("printf '{\"id\": %s, \"text\": \"%s\"}' \"$1\" "
                          "\"$(grep -o '\"id\":[0-9]*' \"$2\" | tr -dc 0-9)\"",
                          {"{id}", "{prompts}"},
                          {{"per_request", true}, {"case", {{"output", folder_.string()}, {"first_id", 3}}}})
                  .ok());
  for (const uint64_t first : {0, 7}) {
    for (uint64_t i = 0; i < 2; ++i) ASSERT_TRUE(submit(engine_.get(), first + i, {.text = "p"}).ok());
    Outcome outcome;
    ASSERT_TRUE(drain(engine_.get(), &outcome).ok());
    EXPECT_EQ(outcome.finished[first].text, "3") << "as in prompts.jsonl";
    EXPECT_EQ(outcome.finished[first + 1].text, "4");
  }
}

TEST_F(Process, ACancelledRequestChangesNoOthersId) {
  for (const bool each : {false, true}) {
    const std::string id = each ? "\"$2\"" : "2";
    std::vector<std::string> words = {"{prompts}"};
    if (each) words.push_back("{id}");
    ASSERT_TRUE(open_script("printf '{\"id\": %s, \"text\": \"%s\"}' " + id + " \"$(tr -dc '0-9' < \"$1\" | cut -c1)\"",
                            words, {{"per_request", each}})
                    .ok());
    submit_texts({"p", "q", "r"});
    ASSERT_TRUE(engine_->cancel(0).ok());
    ASSERT_TRUE(engine_->cancel(1).ok());
    Outcome outcome;
    ASSERT_TRUE(drain(engine_.get(), &outcome).ok());
    EXPECT_EQ(outcome.finished[2].text, "2") << each;
  }
}

TEST_F(Process, IdsBeginWhereTheCaseSays) {
  ASSERT_TRUE(open_script("echo '{\"1\": {\"generated_text\": \"x\"}}'", {},
                          {{"case", {{"output", folder_.string()}, {"first_id", 1}}}})
                  .ok());
  ASSERT_TRUE(submit(engine_.get(), 1, {.text = "p"}).ok());
  Outcome outcome;
  ASSERT_TRUE(drain(engine_.get(), &outcome).ok());
  EXPECT_EQ(outcome.finished.at(1).text, "x");
}

TEST_F(Process, ReadsWhereTheScriptOfTheCaseWrites) {
  const std::string own = (folder_ / "own.json").string();
  ASSERT_TRUE(
      open({{"command", json::array({"sh", "-c", "echo '{{\"0\": {{\"generated_text\": \"x\"}}}}' > \"$2\"", "sh",
                                     "{model_args}"})},
            {"case", {{"output", folder_.string()}, {"output_path", own}, {"model_args", {"--output-path", own}}}}})
          .ok());
  EXPECT_EQ(run({"p"}).finished.at(0).text, "x");
  EXPECT_FALSE(fs::exists(own)) << "the case's results go there";
  EXPECT_THAT(file("output.json"), HasSubstr("generated_text"));
}

TEST_F(Process, AnOutputThatCannotBeCopiedIsKeptAndIsTheMachinesFault) {
  const std::string own = (folder_ / "own.json").string();
  json options = {{"case", {{"output", folder_.string()}, {"output_path", own}}},
                  {"environment", {{"MY_API_KEY", "tOpSeCrEt99"}}}};
  ASSERT_TRUE(
      open_script("mkdir \"$2/output.json\"; echo \"{ $MY_API_KEY\" > \"$1\"", {own, "{work_dir}"}, options).ok());
  const Status failed = failure();
  EXPECT_EQ(failed.code(), StatusCode::kInfra) << failed.message();
  EXPECT_THAT(failed.message(), AllOf(HasSubstr(own + ": what the command wrote cannot be copied to "),
                                      HasSubstr("it is kept where it is")));
  std::ifstream kept(own);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(kept), {}), "{ ***\n");
}

TEST_F(Process, WhatAnEarlierCommandLeftIsNeverTakenForTheOutput) {
  const fs::path own = folder_ / "own.json";
  fs::create_directories(own / "not_empty");
  ASSERT_TRUE(
      open_script("true", {own.string()}, {{"case", {{"output", folder_.string()}, {"output_path", own.string()}}}})
          .ok());
  const Status failed = failure();
  EXPECT_EQ(failed.code(), StatusCode::kInfra);
  EXPECT_THAT(failed.message(), HasSubstr("own.json: cannot be removed before the command"));
}

TEST_F(Process, WhatIsNoFileIsNeverRemoved) {
  const fs::path own = folder_ / "own.json";
  const auto refused = [&] {
    EXPECT_TRUE(
        open_script("true", {own.string()}, {{"case", {{"output", folder_.string()}, {"output_path", own.string()}}}})
            .ok());
    EXPECT_THAT(failure().message(), HasSubstr("own.json: cannot be removed before the command: it is no file"));
    EXPECT_TRUE(fs::exists(own));
    fs::remove(own);
  };
  ASSERT_EQ(::mkfifo(own.c_str(), 0600), 0);
  refused();
  fs::create_directory(own);
  refused();
}

TEST_F(Process, AnOutputPathIsAWholePathAmongTheWords) {
  const auto answer = [&](const std::string& path, std::vector<std::string> words) {
    const std::string script =
        "echo '{\"0\": {\"generated_text\": \"stdout\"}}'; echo '{\"0\": {\"generated_text\": "
        "\"file\"}}' > " +
        path;
    EXPECT_TRUE(
        open_script("f() { " + script + "; }; f", words,
                    {{"folder", folder_.string()}, {"case", {{"output", folder_.string()}, {"output_path", path}}}})
            .ok());
    return run({"p"}).finished.at(0).text;
  };
  EXPECT_EQ(answer("o", {}), "file") << "named in the script, seen from where it runs";
  EXPECT_EQ(answer("o.json", {"--output-path=o.json"}), "file");
  const std::string script = "echo '{\"0\": {\"generated_text\": \"stdout\"}}'";
  std::ofstream(folder_ / "o") << "mine";
  ASSERT_TRUE(
      open_script(script, {"hello", "./o.json", "/o", "o-1"},
                  {{"folder", folder_.string()}, {"case", {{"output", folder_.string()}, {"output_path", "o"}}}})
          .ok());
  EXPECT_EQ(run({"p"}).finished.at(0).text, "stdout") << "part of other words";
  EXPECT_EQ(file("../o"), "mine");
}

TEST_F(Process, OnlyTheRequestsThatAScriptKeepsAreMissed) {
  json facts = {{"output", folder_.string()}, {"output_every", 2}};
  ASSERT_TRUE(open_script("echo '{\"0\": {\"generated_text\": \"x\"}, \"2\": {\"generated_text\": \"y\"}}'", {},
                          {{"case", facts}})
                  .ok());
  const Outcome outcome = run({"a", "b", "c", "d"});
  EXPECT_EQ(outcome.finished.count(1), 1U);
  EXPECT_THAT(outcome.failed.at(3).message(), HasSubstr("has no result of it; it has 2 of 4"))
      << "the last one is kept";
}

TEST_F(Process, QuantitiesOfAllRequestsTravelWithTheFirstAndUnknownOnesAreNull) {
  ASSERT_TRUE(open_script("echo '{\"0\": {\"generated_text\": \"x\"}, \"throughput\": [1.5, 2]}'", {}).ok());
  const json extra = json::parse(run({"a"}).finished.at(0).extra);
  EXPECT_EQ(extra["throughput"], json({1.5, 2}));
  EXPECT_TRUE(extra["mem-max-allocated-bytes"].is_null());
}

TEST_F(Process, AMissingResultFailsItsRequestAlone) {
  ASSERT_TRUE(open_script("echo '{\"id\": 1, \"text\": \"b\"}'", {}).ok());
  const Outcome outcome = run({"p", "q"});
  EXPECT_EQ(outcome.finished.at(1).text, "b");
  EXPECT_EQ(outcome.failed.at(0).code(), StatusCode::kInvalid);
}

TEST_F(Process, CannotForceTokens) {
  ASSERT_TRUE(open_script("echo '{\"text\": \"b\"}'", {}).ok());
  ASSERT_TRUE(submit(engine_.get(), 0, {.text = "p", .forced = {1}}).ok());
  Outcome outcome;
  ASSERT_TRUE(drain(engine_.get(), &outcome).ok());
  EXPECT_EQ(outcome.failed.at(0).code(), StatusCode::kUnsupported);
}

TEST_F(Process, CancelsAndResets) {
  ASSERT_TRUE(open_script("echo '{\"text\": \"b\"}'", {}).ok());
  submit_texts({"p", "q"});
  EXPECT_EQ(submit(engine_.get(), 1, {}).code(), StatusCode::kInvalid);
  ASSERT_TRUE(engine_->cancel(0).ok());
  EXPECT_EQ(engine_->cancel(0).code(), StatusCode::kNotFound);
  ASSERT_TRUE(engine_->reset().ok());
  EXPECT_EQ(engine_->pending(), 0U);
  EXPECT_EQ(run({"p"}).finished.size(), 1U);
}

TEST_F(Process, MistakesInTheCommandAreFoundAtOnce) {
  EXPECT_THAT(open_script("x", {"{outptu}"}).message(),
              HasSubstr("there is no template variable {outptu} (did you mean 'output'?); known: {case}"));
  EXPECT_THAT(open_script("x", {"{prompt}"}).message(), HasSubstr("set the option per_request"));
  EXPECT_THAT(open_script("x", {"{checkpoint}"}).message(), HasSubstr("MODEL_ARGS have no --load"));
  ASSERT_TRUE(open(json::object()).ok()) << "it may train";
  EXPECT_THAT(submit(engine_.get(), 0, {}).message(), HasSubstr("command is not set"));
}

TEST_F(Process, ACommandThatIsNotThereIsTheMachinesFault) {
  ASSERT_TRUE(open({{"command", "no_such_program_of_ours {output}"}}).ok());
  const Status failed = failure();
  EXPECT_EQ(failed.code(), StatusCode::kInfra);
  EXPECT_THAT(failed.message(), HasSubstr("command not found: 'no_such_program_of_ours'"));
}

TEST_F(Process, ABadEndSaysWhatTheCommandSaid) {
  ASSERT_TRUE(open_script("echo first >&2; echo 'the reason' >&2; exit 7", {}).ok());
  Status failed = failure();
  EXPECT_EQ(failed.code(), StatusCode::kInternal);
  EXPECT_THAT(failed.message(), AllOf(HasSubstr("exit code 7"), HasSubstr("end of its stderr: first | the reason")));
  EXPECT_THAT(host_.lines(), Contains(HasSubstr("the reason")));
  ASSERT_TRUE(open({{"command", {kMisbehaving, "die", "11"}}}).ok());
  failed = failure();
  EXPECT_THAT(failed.message(), AllOf(HasSubstr("SIGSEGV"), HasSubstr("it wrote nothing")));
}

TEST_F(Process, LimitsEndTheWholeTree) {
  const json facts = {{"output", folder_.string()}};
  struct Case {
    json options;
    std::string expected;
  };
  const std::vector<Case> cases = {
      {{{"command", {kMisbehaving, "family", folder_.string()}}, {"time_limit", 0.5}, {"kill_grace", 0.1}},
       "time limit of 0.5 s reached"},
      {{{"command", {kMisbehaving, "family", folder_.string()}},
        {"case", {{"output", folder_.string()}, {"time_limit_s", 0.6}}}},
       "time limit of 0."},  // what is left of it but for the reserve
      {{{"command", {kMisbehaving, "eat_in_child", "1000"}}, {"memory_limit", 50000000}}, "memory limit of 0.05 GB"},
      {{{"command", {kMisbehaving, "flood"}}, {"output_limit", 1000000}}, "more than 1.0 MB were written to stdout"},
      {{{"command", {kMisbehaving, "flood_errors"}}, {"output_limit", 1000000}}, "were written to stderr"},
  };
  for (const Case& one : cases) {
    ASSERT_TRUE(open(one.options).ok());
    const Status failed = failure();
    EXPECT_EQ(failed.code(), StatusCode::kExhausted) << one.options.dump();
    EXPECT_THAT(failed.message(), HasSubstr(one.expected));
    EXPECT_LT(failed.message().size(), 1000U);
    EXPECT_THAT(living(), IsEmpty());
  }
}

TEST_F(Process, WhatALaxProgramLeavesBehindIsEndedAndTold) {
  ASSERT_TRUE(
      open({{"kill_grace", 0.1},
            {"command", {"sh", "-c", kMisbehaving + " leave " + folder_.string() + "; echo '{{\"text\": \"x\"}}'"}}})
          .ok());
  EXPECT_EQ(run({"p"}).finished.at(0).text, "x");
  EXPECT_THAT(host_.lines(), Contains(HasSubstr("2 processes were left behind and were ended")));
  EXPECT_THAT(living(), IsEmpty());
}

TEST_F(Process, OutputThatCannotBeUsedIsInvalid) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"true", "stdout of the command is empty"},
      {"exec >&-", "stdout of the command is empty"},
      {"echo Segmentation fault", "stdout of the command, line 1, character 1: no valid JSON: \"Segmentation fault\""},
      {"printf '{\"text\": \"ab'", "stdout of the command"},
      {"printf '{\"text\": \"\\377\"}'", "invalid UTF-8"},
      {"echo '{\"text\": \"a\"}'; echo '{\"text\": \"a\"}'", "line 2: is one more than the 1 requests"},
      {"echo '{\"id\": 9, \"text\": \"a\"}'", "request \"9\" was not asked for"},
      {"head -c 3000000 /dev/zero", "stdout of the command, line 1"},
  };
  for (const auto& [script, expected] : cases) {
    ASSERT_TRUE(open_script(script, {}).ok());
    const Status failed = failure();
    EXPECT_EQ(failed.code(), StatusCode::kInvalid) << script;
    EXPECT_THAT(failed.message(), HasSubstr(expected));
    EXPECT_LT(failed.message().size(), 500U);
  }
  ASSERT_TRUE(open_script("true").ok());
  EXPECT_THAT(failure().message(), HasSubstr("the command ended well but wrote no "));
}

TEST_F(Process, SecretsAreNotShownAnywhere) {
  const std::string secret = "tOpSeCrEt99";
  ASSERT_TRUE(open_script("echo \"key $MY_API_KEY\" >&2; echo \"$MY_API_KEY\"; exit 3", {},
                          {{"environment", {{"MY_API_KEY", secret}, {"PLAIN", "visible"}}}})
                  .ok());
  const Status failed = failure();
  EXPECT_THAT(failed.message(), AllOf(HasSubstr("key ***"), Not(HasSubstr(secret))));
  EXPECT_EQ(file("stdout.txt"), "***\n");
  EXPECT_EQ(file("stderr.txt"), "key ***\n");
  EXPECT_THAT(file("command.json"),
              AllOf(HasSubstr("\"MY_API_KEY\": \"***\""), HasSubstr("\"PLAIN\": \"visible\""), Not(HasSubstr(secret))));
  for (const std::string& line : host_.lines()) EXPECT_THAT(line, Not(HasSubstr(secret)));
}

TEST_F(Process, NoFileThatIsKeptHasASecret) {
  const std::string secret = "tOpSeCrEt99";
  ASSERT_TRUE(open_script("mkdir -p \"$2/logs/none_x/attempt_0/1\"; echo \"key $MY_API_KEY\" > "
                          "\"$2/logs/none_x/attempt_0/1/stderr.log\"; echo \"$MY_API_KEY\" > \"$2/notes\"; "
                          "printf '{\"text\": \"it is %s\", \"tokens\": [1]}' \"$MY_API_KEY\" > \"$1\"",
                          {"{output}", "{work_dir}"}, {{"environment", {{"MY_API_KEY", secret}}}})
                  .ok());
  EXPECT_THAT(run({"p"}).failed.at(0).message(),
              AllOf(HasSubstr("\"it is ***\""), HasSubstr("neither judged nor kept")));
  EXPECT_EQ(file("logs/none_x/attempt_0/1/stderr.log"), "key ***\n");
  for (const auto& entry : fs::recursive_directory_iterator(folder_)) {
    if (!entry.is_regular_file()) continue;
    std::ifstream in(entry.path(), std::ios::binary);
    EXPECT_THAT(std::string(std::istreambuf_iterator<char>(in), {}), Not(HasSubstr(secret))) << entry.path();
  }
}

TEST_F(Process, NoPartOfASecretIsShownWhereAnOutputIsCut) {
  const std::string secret = "tOpSeCrEt" + std::string(40, '9');
  ASSERT_TRUE(open_script("printf '" + std::string(40, 'x') + "%s' \"$MY_API_KEY\"", {},
                          {{"environment", {{"MY_API_KEY", secret}}}})
                  .ok());
  const Status failed = failure();
  EXPECT_EQ(failed.code(), StatusCode::kInvalid);
  EXPECT_THAT(failed.message(), AllOf(HasSubstr("xx***"), Not(HasSubstr("tOpSe"))));
}

TEST_F(Process, ASecretThatLooksLikeANumberChangesNone) {
  ASSERT_TRUE(open_script("echo '{\"text\": \"pin\", \"tokens\": [1234], \"generated_logprobs\": [-0.1234]}'", {},
                          {{"environment", {{"PIN_SECRET", "1234"}}}})
                  .ok());
  const Outcome outcome = run({"p"});
  ASSERT_EQ(outcome.finished.count(0), 1U) << outcome.failed.at(0).message();
  EXPECT_EQ(outcome.finished.at(0).text, "pin");
  EXPECT_THAT(outcome.finished.at(0).tokens, ElementsAre(1234));
}

TEST_F(Process, ACountOfTokensIsNoSecret) {
  ASSERT_TRUE(
      open_script("echo '{\"text\": \"a context of 2048 ids\"}'", {}, {{"environment", {{"MAX_TOKENS", "2048"}}}})
          .ok());
  const Outcome outcome = run({"p"});
  ASSERT_EQ(outcome.finished.count(0), 1U) << outcome.failed.at(0).message();
  EXPECT_EQ(outcome.finished.at(0).text, "a context of 2048 ids");
}

TEST_F(Process, TheEnvironmentIsTheWorkersUnlessToldOtherwise) {
  ::setenv("PROCESS_TEST_A", "a", 1);
  const std::string script = "printf '{\"text\": \"%s-%s\"}' \"$PROCESS_TEST_A\" \"$PROCESS_TEST_B\"";
  ASSERT_TRUE(open_script(script, {}, {{"environment", {{"PROCESS_TEST_B", "b"}}}}).ok());
  EXPECT_EQ(run({"p"}).finished.at(0).text, "a-b");
  ASSERT_TRUE(open_script(script, {}, {{"pass_environment", {"PATH"}}}).ok());
  EXPECT_EQ(run({"p"}).finished.at(0).text, "-");
  ::setenv("PROCESS_TEST_A", "c", 1);
  ASSERT_TRUE(open_script(script, {}, {{"pass_environment", false}}).ok());
  EXPECT_EQ(run({"p"}).finished.at(0).text, "-");
}

TEST_F(Process, TheLaunchLineIsThatOfTheCase) {
  ASSERT_TRUE(
      open({{"command", "{launch} run.py {model_args}"},
            {"ft_launcher", {"echo"}},
            {"processes", 2},
            {"case", {{"output", folder_.string()}, {"launcher", "ft_launcher"}, {"model_args", {"--x", "a b"}}}}})
          .ok());
  EXPECT_EQ(failure().code(), StatusCode::kInvalid);
  EXPECT_THAT(file("stdout.txt"),
              AllOf(HasSubstr("--nproc_per_node 2 --nnodes 1 --master_addr localhost --master_port 29500 --node_rank 0 "
                              "--log-dir "),
                    HasSubstr("--tee 0:3,1:3 --redirects 3 --max-restarts=3 run.py --x a b")));
}

TEST_F(Process, ANumberOfProcessesThatIsNoneIsRefusedWhereALaunchLineNeedsIt) {
  for (const char* told : {"ten", "4x", "0", "-1", "99999999999"}) {
    const json environment = {{"GPUS_PER_NODE", told}};
    const Status opened = open({{"command", "{launch} run.py"}, {"torchrun", {"echo"}}, {"environment", environment}});
    EXPECT_EQ(opened.code(), StatusCode::kInvalid) << told;
    EXPECT_THAT(opened.message(), HasSubstr(std::string("GPUS_PER_NODE is '") + told + "'"));
    EXPECT_TRUE(open({{"command", "echo"}, {"environment", environment}}).ok()) << "nothing is launched";
    EXPECT_TRUE(
        open({{"command", "{launch} run.py"}, {"torchrun", {"echo"}}, {"processes", 2}, {"environment", environment}})
            .ok());
  }
}

}  // namespace
}  // namespace assay::engines
