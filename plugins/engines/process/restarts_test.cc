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
using testing::Contains;
using testing::HasSubstr;
using testing::Not;
namespace fs = std::filesystem;

// A fake ft_launcher: `told` is a script of sh that has the folder of logs in $log; then the launched words run.
class LaunchedAnswers : public testing::Test {
 protected:
  void open(const std::string& told, const json& more = json::object()) {
    const std::string launcher = folder_ / "launcher";
    std::ofstream(launcher) << "#!/bin/sh\n"
                               "for word; do\n"
                               "  [ \"$prev\" = --log-dir ] && log=$word\n"
                               "  prev=$word; shift; case $word in --max-restarts=*) break ;; esac\n"
                               "done\n"
                            << told << "\nexec \"$@\"\n";
    fs::permissions(launcher, fs::perms::owner_all);
    json options = {{"command", {"{launch}", "sh", "-c", answer_}},
                    {"ft_launcher", {launcher}},
                    {"environment", {{"SOME_TOKEN", "tOpSeCrEt99"}}},
                    {"case", {{"output", folder_.path().string()}, {"launcher", "ft_launcher"}}}};
    options.update(more);
    Result<std::unique_ptr<ProcessEngine>> engine = open_on_toy<ProcessEngine>(&model_, host_, options.dump());
    ASSERT_TRUE(engine.ok()) << engine.status().message();
    engine_ = *std::move(engine);
  }
  // What came of two prompts; the ids go on from call to call.
  Status ask(Outcome* outcome) {
    for (int i = 0; i < 2; ++i) EXPECT_TRUE(submit(engine_.get(), next_++, {.text = "p"}).ok());
    return drain(engine_.get(), outcome);
  }
  static uint64_t restarts_of(const EngineResult& result) {
    const json extra = json::parse(result.extra, nullptr, false);
    if (!extra.is_object() || !extra.contains("engine_counters")) return 0;
    return extra["engine_counters"].value("restarts", uint64_t{0});
  }

  std::string answer_ = "echo '{{\"id\": 0, \"text\": \"a\"}}'; echo '{{\"id\": 1, \"text\": \"b\"}}'";
  const tests::TemporaryFolder folder_;
  ToyModel model_;
  ToyHost host_{&model_};
  std::unique_ptr<ProcessEngine> engine_;
  uint64_t next_ = 0;
};

constexpr const char* kTwice =
    "for i in 3 2; do echo \"[default] Worker group FAILED. $i/3 attempts left; will restart worker group\" >&2; done";

TEST_F(LaunchedAnswers, RestartsOfTheProgramAreToldOnceAndLogged) {
  open(kTwice);
  Outcome outcome;
  ASSERT_TRUE(ask(&outcome).ok());
  EXPECT_EQ(outcome.finished.at(1).text, "b");
  EXPECT_EQ(restarts_of(outcome.finished.at(0)) + restarts_of(outcome.finished.at(1)), 2U);
  EXPECT_THAT(host_.lines(), Contains(AllOf(HasSubstr("restart 2: "), HasSubstr("2/3 attempts left"))));
}

TEST_F(LaunchedAnswers, NothingIsToldWhereNothingWasRestarted) {
  open("mkdir -p \"$log/none_x/attempt_0/0\"");
  Outcome outcome;
  ASSERT_TRUE(ask(&outcome).ok());
  EXPECT_EQ(restarts_of(outcome.finished.at(0)), 0U);
  EXPECT_THAT(host_.lines(), Not(Contains(testing::AnyOf(HasSubstr("restart 1"), HasSubstr("restarted")))));
}

TEST_F(LaunchedAnswers, AttemptsTellWhereTheLogIsSilentEachCommandItsOwn) {
  open("mkdir -p \"$log/none_x/attempt_1/0\"");
  Outcome outcome;
  ASSERT_TRUE(ask(&outcome).ok());
  EXPECT_EQ(restarts_of(outcome.finished.at(0)), 1U);
  EXPECT_THAT(host_.lines(), Contains(HasSubstr("restarted 1 time")));
  // One command a request: the folder of request 0 is used again after a reset, with its log of before.
  answer_ = "echo '{{\"text\": \"a\"}}'";
  open("mkdir -p \"$log/none_x/attempt_1/0\"", {{"per_request", true}});
  outcome = {};
  next_ = 0;
  ASSERT_TRUE(ask(&outcome).ok());
  EXPECT_EQ(restarts_of(outcome.finished.at(0)) + restarts_of(outcome.finished.at(1)), 2U) << "one each";
  ASSERT_TRUE(engine_->reset().ok());
  next_ = 0;
  outcome = {};
  ASSERT_TRUE(ask(&outcome).ok());
  EXPECT_EQ(restarts_of(outcome.finished.at(0)), 0U) << "that was the command before";
}

TEST_F(LaunchedAnswers, AFailureTellsThemToo) {
  const std::string told = std::string(kTwice) + "; echo \"attempts left; will restart $SOME_TOKEN\"";
  open(told + "; exit 1");
  Outcome outcome;
  const Status died = ask(&outcome);
  EXPECT_EQ(died.code(), StatusCode::kInternal);
  EXPECT_THAT(died.message(), AllOf(HasSubstr("exit code 1"), HasSubstr("; restart 1: "), HasSubstr("; restart 3: "),
                                    HasSubstr("will restart ***"), Not(HasSubstr("tOpSeCrEt"))));
  answer_ = "echo nonsense";
  next_ = 0;
  open(kTwice);
  const Status useless = ask(&outcome);
  EXPECT_EQ(useless.code(), StatusCode::kInvalid);
  EXPECT_THAT(useless.message(), HasSubstr("; restart 2: "));
  answer_ = "echo '{{\"id\": 0, \"error\": \"no room\"}}'; echo '{{\"id\": 1, \"error\": \"none here\"}}'";
  next_ = 0;
  open(kTwice);
  outcome = {};
  ASSERT_TRUE(ask(&outcome).ok());
  EXPECT_THAT(outcome.failed.at(0).message(), AllOf(HasSubstr("no room"), HasSubstr("; restart 2: ")));
}

TEST_F(LaunchedAnswers, CountsOfTheProgramItselfStay) {
  answer_ =
      "echo '{{\"id\": 0, \"text\": \"a\", \"engine_counters\": {{\"batch\": 2}}}}'; echo '{{\"id\": 1, \"text\": "
      "\"b\"}}'";
  open(kTwice);
  Outcome outcome;
  ASSERT_TRUE(ask(&outcome).ok());
  const json counters = json::parse(outcome.finished.at(0).extra)["engine_counters"];
  EXPECT_EQ(counters, (json{{"batch", 2}, {"restarts", 2}}));
}

}  // namespace
}  // namespace assay::engines
