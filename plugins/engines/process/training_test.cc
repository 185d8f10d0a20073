#include <gmock/gmock.h>
#include <stdlib.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "core/train/job.h"
#include "plugins/engines/process/launch.h"
#include "plugins/engines/process/process.h"
#include "plugins/engines/toy_backend/engine_driver.h"
#include "tests/temporary_folder.h"

namespace assay::engines {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
namespace fs = std::filesystem;

// What the caller's environment may say: nothing of what the harness exports.
const std::vector<std::string> kPassedVariables = {"PATH",         "HOME",         "TMPDIR", "LD_LIBRARY_PATH",
                                                   "ASAN_OPTIONS", "UBSAN_OPTIONS"};

// Fake launchers: sh programs that write down their words and environment, and fail as often as they are told.
class Training : public testing::Test {
 protected:
  Training() {
    const std::string launcher = (folder_ / "launcher").string();
    std::ofstream(launcher) << "#!/bin/sh\n"
                               "log=; for word; do [ \"$prev\" = --log-dir ] && log=$word; prev=$word; done\n"
                               "for word; do printf '[%s]' \"$word\"; done > \"$log/words\"\n"
                               "env > \"$log/environment\"\n"
                               "echo 'INFO: [default] starting workers' >&2\n"
                               "for i in ${FAKE_RESTARTS}; do\n"
                               "  echo \"INFO: [default] Worker group FAILED. $i/3 attempts left; will restart worker "
                               "group\" >&2\n"
                               "done\n"
                               "exit ${FAKE_EXIT:-0}\n";
    fs::permissions(launcher, fs::perms::owner_all);
    Result<std::unique_ptr<ProcessEngine>> engine =
        open_on_toy<ProcessEngine>(&model_, host_,
                                   nlohmann::json{{"torchrun", {launcher, "torch"}},
                                                  {"ft_launcher", {launcher, "ft"}},
                                                  {"kill_grace", 0.1},
                                                  {"pass_environment", kPassedVariables}}
                                       .dump());
    EXPECT_TRUE(engine.ok()) << engine.status().message();
    engine_ = *std::move(engine);
    job_.name = "pretraining/case";
    job_.script = "pretrain_gpt.py";
    job_.arguments = {"--train-iters", "4", "--x", "a b"};
    job_.folders.logs = (folder_ / "logs").string();
    job_.folder = folder_.string();
  }

  Status run_job() {
    const std::string text = train::to_json(job_);
    auto training = sdk::sized<assay_training>();
    training.run = 1;
    training.job = sdk::view(text);
    result_ = sdk::sized<assay_training_result>();
    return engine_->train(training, &result_);
  }
  std::string message() const { return std::string(sdk::text(result_.message)); }
  std::string log(const std::string& name) const {
    std::ifstream in(folder_ / "logs" / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  const tests::TemporaryFolder temporary_;
  const fs::path& folder_ = temporary_.path();
  ToyModel model_;
  ToyHost host_{&model_};
  std::unique_ptr<ProcessEngine> engine_;
  train::Job job_;
  assay_training_result result_ = {};
};

TEST_F(Training, StartsTheLaunchLineOfTheHarness) {
  job_.processes_per_node = 4;
  job_.nodes = 2;
  job_.node_rank = 1;
  ASSERT_TRUE(run_job().ok());
  EXPECT_EQ(result_.exit_code, 0);
  EXPECT_EQ(result_.restarts, 0);
  EXPECT_EQ(log("words"),
            "[torch][--nproc_per_node][4][--nnodes][2][--master_addr][localhost][--master_port][29500][--node_rank][1]"
            "[--log-dir][" +
                job_.folders.logs + "][--tee][0:3,3:3][--redirects][3][pretrain_gpt.py][--train-iters][4][--x][a b]");
  job_.launcher = "ft_launcher";
  job_.script_is_program = true;
  ASSERT_TRUE(run_job().ok());
  EXPECT_THAT(log("words"), AllOf(HasSubstr("[ft][--nproc_per_node]"),
                                  HasSubstr("[--redirects][3][--max-restarts=3][--no-python][pretrain_gpt.py]")));
}

TEST_F(Training, AScriptOfSeveralWordsIsSplitAsAShellDoes) {
  job_.script = "nemo_of_ours llm  pretrain -y --factory x ";
  job_.script_is_program = true;
  ASSERT_TRUE(run_job().ok());
  EXPECT_THAT(log("words"),
              HasSubstr("[--no-python][nemo_of_ours][llm][pretrain][-y][--factory][x][--train-iters][4][--x][a b]"));
  fs::create_directories(folder_ / "programs");
  std::ofstream(folder_ / "programs/nemo_of_ours") << "";
  const auto words = [this] { return script_words(job_, folder_, folder_ / "programs"); };
  EXPECT_EQ(words().front(), (folder_ / "programs/nemo_of_ours").string()) << "where the harness takes it from";
  job_.script_is_program = false;
  EXPECT_EQ(words().front(), "nemo_of_ours");
  job_.script = "my script.py";
  EXPECT_THAT(words(), ElementsAre("my", "script.py"));
  std::ofstream(folder_ / "my script.py") << "";
  EXPECT_THAT(words(), ElementsAre("my script.py")) << "a file of that name";
}

TEST_F(Training, ExportsWhatTheHarnessExports) {
  ::setenv("NCCL_ALGO", "Tree", 1);
  engine_.reset();
  std::vector<std::string> passed = kPassedVariables;
  passed.emplace_back("NCCL_ALGO");
  Result<std::unique_ptr<ProcessEngine>> engine = open_on_toy<ProcessEngine>(
      &model_, host_,
      nlohmann::json{{"torchrun", {(folder_ / "launcher").string()}}, {"pass_environment", passed}}.dump());
  ::unsetenv("NCCL_ALGO");
  engine_ = *std::move(engine);
  job_.environment = {{"OWN", "x"}, {"NCCL_PROTO", "LL"}};
  ASSERT_TRUE(run_job().ok());
  const std::string environment = log("environment");
  EXPECT_THAT(environment, AllOf(HasSubstr("NCCL_ALGO=Tree\n"), HasSubstr("NCCL_PROTO=LL\n"), HasSubstr("OWN=x\n"),
                                 HasSubstr("NCCL_BUFFSIZE=4194304\n"), HasSubstr("NCCL_TUNER_PLUGIN=\n"),
                                 HasSubstr("PYTHONPATH=" + folder_.string() + ":")));
}

TEST_F(Training, TellsEveryRestart) {
  job_.launcher = "ft_launcher";
  job_.environment = {{"FAKE_RESTARTS", "3 2"}};
  ASSERT_TRUE(run_job().ok());
  EXPECT_EQ(result_.restarts, 2);
  EXPECT_EQ(result_.exit_code, 0);
  EXPECT_THAT(message(),
              AllOf(HasSubstr("exit code 0; restart 1: "), HasSubstr("restart 2: "), HasSubstr("2/3 attempts left")));
  EXPECT_THAT(host_.lines(), Contains(HasSubstr("restart 2: ")));
}

TEST_F(Training, CountsAttemptFoldersWhereTheLogIsSilent) {
  for (const char* folder :
       {"none_abc/attempt_0/0", "none_abc/attempt_2/0", "none_abc/attempt_7x", "none_abc/attempt_"}) {
    fs::create_directories(folder_ / "logs" / folder);
  }
  EXPECT_EQ(restarts_in("", folder_ / "logs").count, 2);
  EXPECT_EQ(restarts_in("", folder_ / "absent").count, 0);
}

// As for commands that answer requests: what the log tells counts, and what an earlier run left does not.
TEST_F(Training, RestartsAreToldAndLoggedByTheLogElseByAttempts) {
  job_.arguments = {};
  job_.command = {"sh", "-c", "mkdir -p logs/none_a/attempt_1/0"};
  ASSERT_TRUE(run_job().ok());
  EXPECT_EQ(result_.restarts, 1);
  EXPECT_THAT(message(), HasSubstr("exit code 0; restarted 1 time"));
  EXPECT_THAT(host_.lines(), Contains("restarted 1 time"));
  job_.command = {"sh", "-c", "mkdir -p logs/none_b/attempt_3/0; echo '3/3 attempts left; will restart' >&2"};
  ASSERT_TRUE(run_job().ok());
  EXPECT_EQ(result_.restarts, 1) << "one line, one restart";
  EXPECT_THAT(message(), HasSubstr("exit code 0; restart 1: 3/3 attempts left; will restart"));
  job_.command = {"true"};
  ASSERT_TRUE(run_job().ok());
  EXPECT_EQ(result_.restarts, 0);
}

TEST_F(Training, AFailureIsAResult) {
  job_.environment = {{"FAKE_EXIT", "5"}};
  ASSERT_TRUE(run_job().ok());
  EXPECT_EQ(result_.exit_code, 5);
  EXPECT_EQ(result_.signal, 0);
  EXPECT_THAT(message(), AllOf(HasSubstr("exit code 5"), HasSubstr("starting workers")));
}

TEST_F(Training, ACommandOfItsOwnAndLimits) {
  job_.command = {ASSAY_BINARY_DIR "/bin/misbehaving_program", "family", folder_.string()};
  job_.time_limit_s = 0.5;
  ASSERT_TRUE(run_job().ok());
  EXPECT_EQ(result_.exit_code, -1);
  EXPECT_NE(result_.signal, 0);
  EXPECT_THAT(message(), HasSubstr("time limit of 0.5 s reached"));
  job_.command = {"no_such_program_of_ours"};
  EXPECT_EQ(run_job().code(), StatusCode::kInfra);
}

TEST_F(Training, OptionsOfCommandsHoldOfItOrAreRefused) {
  const auto open_with = [this](const nlohmann::json& more) {
    nlohmann::json options = {{"torchrun", {(folder_ / "launcher").string(), "torch"}},
                              {"kill_grace", 0.1},
                              {"pass_environment", kPassedVariables}};
    options.update(more);
    engine_ = *open_on_toy<ProcessEngine>(&model_, host_, options.dump());
  };
  open_with({{"processes", 3}, {"folder", folder_.string()}});
  job_.folder.clear();
  ASSERT_TRUE(run_job().ok());
  EXPECT_THAT(log("words"), HasSubstr("[--nproc_per_node][3]"));
  job_.command = {"sh", "-c", "pwd -P"};
  ASSERT_TRUE(run_job().ok());
  EXPECT_EQ(log("run_1.stdout.txt"), fs::canonical(folder_).string() + "\n");
  open_with({{"time_limit", 0.5}});
  job_.time_limit_s = 60;
  job_.command = {ASSAY_BINARY_DIR "/bin/misbehaving_program", "family", folder_.string()};
  ASSERT_TRUE(run_job().ok());
  EXPECT_THAT(message(), HasSubstr("time limit of 0.5 s reached")) << "the smaller one counts";
  open_with({{"command", {"false"}}});
  EXPECT_EQ(run_job().code(), StatusCode::kInvalid);
}

TEST_F(Training, ScriptsRunAroundItInOneShell) {
  job_.before_script = "export FROM_BEFORE='a b'";
  job_.after_script = "echo \"exit was $EXIT_CODE\"; EXIT_CODE=9";
  job_.command = {"sh", "-c", "echo \"got $FROM_BEFORE\"; exit 4"};
  job_.arguments = {};
  ASSERT_TRUE(run_job().ok());
  EXPECT_EQ(result_.exit_code, 9);
  EXPECT_EQ(log("run_1.stdout.txt"), "got a b\nexit was 4\n");
}

TEST_F(Training, ItsEnvironmentIsTheSameWithAndWithoutScripts) {
  job_.environment = {{"LOG_DIR", "/x"}};
  job_.command = {"sh", "-c", "echo $LOG_DIR"};
  job_.arguments = {};
  for (const char* script : {"", "true"}) {
    job_.before_script = script;
    ASSERT_TRUE(run_job().ok());
    EXPECT_EQ(log("run_1.stdout.txt"), "/x\n") << script;
  }
  job_.environment.clear();
  ASSERT_TRUE(run_job().ok());
  EXPECT_EQ(log("run_1.stdout.txt"), job_.folders.logs + "\n");
}

TEST_F(Training, AFailureNamesTheProgramAndNotTheShellAroundIt) {
  job_.before_script = "true";
  job_.command = {"sh", "-c", "exit 3"};
  job_.arguments = {};
  ASSERT_TRUE(run_job().ok());
  EXPECT_THAT(message(), AllOf(HasSubstr("the command sh after "), HasSubstr("exit code 3")));
}

// The pattern of Megatron-LM's cases that check logs.
TEST_F(Training, AnAfterScriptThatSearchesTheLogsDoesNotFindItself) {
  job_.environment = {{"LOG_DIR", job_.folders.logs}};
  job_.before_script = "export BEFORE_RAN=1";
  job_.after_script =
      "check_log() { if [[ -z $(grep -r $1 \"$2\" $LOG_DIR) ]]; then exit 1; else echo OK; fi }; "
      "check_log -F \"successfully loaded checkpoint\"; EXIT_CODE=0";
  job_.arguments = {};
  for (const bool loaded : {false, true}) {
    // The program tells its whole environment, as many do.
    job_.command = {"sh", "-c", loaded ? "env; echo successfully loaded checkpoint" : "env; echo began anew; exit 3"};
    ASSERT_TRUE(run_job().ok());
    EXPECT_EQ(result_.exit_code, loaded ? 0 : 1) << message();
    EXPECT_THAT(log("run_1.stdout.txt"), HasSubstr("BEFORE_RAN=1\n"));
  }
  std::ifstream record(job_.folders.logs + ".command.json", std::ios::binary);
  EXPECT_THAT(std::string(std::istreambuf_iterator<char>(record), {}),
              AllOf(HasSubstr("successfully loaded checkpoint"), HasSubstr("\"ASSAY_AFTER_SCRIPT\"")));
  EXPECT_FALSE(fs::exists(folder_ / "logs/command.json"));
}

TEST_F(Training, AVariableThatIsNotSetEndsAScript) {
  job_.command = {"echo", "ran"};
  job_.arguments = {};
  job_.before_script = "cd /nowhere_$NOT_SET_ANYWHERE || true";
  ASSERT_TRUE(run_job().ok());
  EXPECT_NE(result_.exit_code, 0);
  EXPECT_EQ(log("run_1.stdout.txt"), "") << "the program does not run";
  EXPECT_THAT(message(), HasSubstr("NOT_SET_ANYWHERE"));
  job_.before_script.clear();
  job_.after_script = "echo \"after $NOT_SET_ANYWHERE\"; EXIT_CODE=0";
  ASSERT_TRUE(run_job().ok());
  EXPECT_NE(result_.exit_code, 0);
  EXPECT_EQ(log("run_1.stdout.txt"), "ran\n");
  job_.after_script = "echo \"after ${NOT_SET_ANYWHERE-nothing}\"";
  ASSERT_TRUE(run_job().ok());
  EXPECT_EQ(result_.exit_code, 0);
  EXPECT_EQ(log("run_1.stdout.txt"), "ran\nafter nothing\n") << "one script alone needs no other";
}

TEST_F(Training, LogsOfEveryRankHaveNoSecrets) {
  job_.environment = {{"HUB_TOKEN", "tOpSeCrEt99"}, {"PLAIN", "visible"}};
  job_.command = {"sh", "-c",
                  "mkdir -p logs/none_x/attempt_0/3; echo \"$HUB_TOKEN $PLAIN\" | "
                  "tee logs/none_x/attempt_0/3/stderr.log"};
  job_.arguments = {};
  ASSERT_TRUE(run_job().ok());
  EXPECT_EQ(log("none_x/attempt_0/3/stderr.log"), "*** visible\n");
  EXPECT_EQ(log("run_1.stdout.txt"), "*** visible\n");
}

TEST_F(Training, SecretsOfItsScriptsAreShownNowhere) {
  job_.before_script = "export HF_TOKEN=sesame-1; echo begun";
  job_.command = {"sh", "-c", "echo \"$HF_TOKEN\"; echo \"$HF_TOKEN\" >&2; exit 3"};
  job_.arguments = {};
  ASSERT_TRUE(run_job().ok());
  EXPECT_EQ(log("run_1.stdout.txt"), "begun\n***\n");
  EXPECT_THAT(message(), AllOf(HasSubstr("***"), Not(HasSubstr("sesame"))));
  EXPECT_THAT(log("../logs.command.json"), AllOf(HasSubstr("export HF_TOKEN=***"), Not(HasSubstr("sesame"))));
}

TEST_F(Training, RefusesAJobThatIsNone) {
  auto training = sdk::sized<assay_training>();
  training.job = sdk::view(std::string_view("{}"));
  EXPECT_EQ(engine_->train(training, &result_).code(), StatusCode::kInvalid);
}

}  // namespace
}  // namespace assay::engines
