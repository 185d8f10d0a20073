// What is not over when the case's time is: INFRA, with the server and the limit named, before the case is ended.
#include <gmock/gmock.h>
#include <signal.h>

#include <filesystem>
#include <thread>
#include <utility>

#include "plugins/engines/openai/server.h"
#include "plugins/engines/openai/testdata/driver.h"
#include "plugins/engines/openai/testdata/test_server.h"
#include "tests/temporary_folder.h"

namespace assay::engines::openai {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

const json kShort = {{"seconds", 0.5}};
constexpr const char* kTimeIsUp = "the case's time is up (ASSAY.timeout is 0.5 s, 0.05 s of them are kept for judging)";

// The limits of its own are never reached.
json patient(const TestServer& server, const json& more = json::object()) {
  json options = {{"url", server.url()}, {"prompt_logprobs", "off"}, {"probe_prompt", "the quick brown fox"}};
  options.update(more);
  return options;
}

class CaseIsOver : public testing::Test {
 protected:
  // The probes have all the time: what is found out holds for the next engine, whatever its case's time is.
  void open(const TestServer& server, const json& more = json::object(), const json& time = kShort) {
    json options = patient(server, more);
    Driver probing;
    Status opened = probing.open(options);
    ASSERT_TRUE(opened.ok()) << opened.message();
    const int asked = server.asked();
    options["case_time"] = time;
    opened = driver_.open(options);
    ASSERT_TRUE(opened.ok()) << opened.message();
    EXPECT_EQ(server.asked(), asked) << "nothing is found out twice";
  }

  Driver driver_;
};

TEST_F(CaseIsOver, AServerThatSaysNothingStopsOrDripsIsInfra) {
  for (const bool stream : {true, false}) {
    for (const char* fault : {"late_stalls", "late_stalls_midway", ""}) {
      if (!stream && std::string(fault) != "late_stalls") continue;
      const TestServer server({.dialect = "vllm", .fault = fault, .token_delay = *fault == '\0' ? 0.02 : 0});
      open(server, {{"stream", stream}});
      ASSERT_TRUE(driver_.submit(0, "late x", 20'000).ok());
      const Ending ending = driver_.drain();
      ASSERT_EQ(ending.failed.count(0), 1U) << fault;
      EXPECT_EQ(ending.failed.at(0).code(), StatusCode::kInfra) << fault;
      EXPECT_THAT(ending.failed.at(0).message(), HasSubstr(kTimeIsUp)) << fault;
    }
  }
}

TEST_F(CaseIsOver, TheServerIsNamedBeforeRequestsThatWereNotEvenSent) {
  const TestServer server({.dialect = "vllm", .fault = "late_stalls"});
  open(server);
  for (uint64_t id = 0; id < 3; ++id) ASSERT_TRUE(driver_.submit(id, "late x").ok());
  const Ending ending = driver_.drain();
  ASSERT_EQ(ending.failed.size(), 3U);
  EXPECT_EQ(ending.order.front(), 0U);
  for (const auto& [id, failed] : ending.failed) {
    EXPECT_EQ(failed.code(), StatusCode::kInfra);
    EXPECT_THAT(failed.message(), HasSubstr(kTimeIsUp));
  }
  EXPECT_THAT(ending.failed.at(2).message(), HasSubstr("it was not sent"));
}

TEST_F(CaseIsOver, ManyRequestsInTurnShareTheTime) {
  const TestServer server({.dialect = "vllm", .delay = 0.02});
  open(server);
  constexpr size_t kRequests = 100;  // 2 s
  for (uint64_t id = 0; id < kRequests; ++id) ASSERT_TRUE(driver_.submit(id, "a").ok());
  const Ending ending = driver_.drain();
  EXPECT_TRUE(ending.broke.ok());
  EXPECT_EQ(ending.finished.size() + ending.failed.size(), kRequests);
  ASSERT_FALSE(ending.failed.empty());
  for (const auto& [id, failed] : ending.failed) {
    EXPECT_EQ(failed.code(), StatusCode::kInfra);
    EXPECT_THAT(failed.message(), HasSubstr(kTimeIsUp));
  }
}

TEST_F(CaseIsOver, NoPauseBeforeARetryIsLongerThanWhatIsLeft) {
  const TestServer closing({.dialect = "vllm", .fault = "late_closes"});
  open(closing, {{"backoff_seconds", 3600}});
  ASSERT_TRUE(driver_.submit(0, "late x").ok());
  EXPECT_EQ(driver_.drain().failed.at(0).code(), StatusCode::kInfra);
  const TestServer busy({.dialect = "vllm", .fault = "late_long_busy"});
  open(busy, {{"most_retry_after_seconds", 3600}}, {{"seconds", 60}});
  ASSERT_TRUE(driver_.submit(0, "late x").ok());
  const Status failed = driver_.drain().failed.at(0);
  EXPECT_EQ(failed.code(), StatusCode::kInfra);
  EXPECT_THAT(failed.message(), HasSubstr("asks to wait 3000 s, which is more than is left of the case's time"));
}

// The other request has the only place until the time is up; one that was sent again before that, or was not to be,
// says why, too.
TEST_F(CaseIsOver, ARequestThatWaitsForItsRetrySaysWhatFailedBefore) {
  for (const auto& [fault, said] : {std::pair("late_busy_1s", "HTTP 429"), std::pair("late_closes", "POST http://")}) {
    const TestServer server({.dialect = "vllm", .fault = fault, .held = 1000});
    open(server, {{"backoff_seconds", 1}, {"retries", 100}}, {{"seconds", 2}});
    ASSERT_TRUE(driver_.submit(0, "late x").ok());
    ASSERT_TRUE(driver_.submit(1, "held y").ok());
    const Ending ending = driver_.drain();
    ASSERT_EQ(ending.failed.size(), 2U) << fault;
    EXPECT_EQ(ending.failed.at(0).code(), StatusCode::kInfra) << fault;
    EXPECT_THAT(ending.failed.at(0).message(), HasSubstr(said)) << fault;
    EXPECT_THAT(ending.failed.at(1).message(), HasSubstr("the case's time is up")) << fault;
  }
}

TEST_F(CaseIsOver, ArrivalsThatComeLaterAreNotWaitedFor) {
  const TestServer server({.dialect = "vllm"});
  open(server, {{"requests_per_second", 1e-4}});
  for (uint64_t id = 0; id < 2; ++id) ASSERT_TRUE(driver_.submit(id, "a").ok());
  const Ending ending = driver_.drain();
  ASSERT_EQ(ending.failed.count(1), 1U);
  EXPECT_THAT(ending.failed.at(1).message(), AllOf(HasSubstr("it was not sent"), HasSubstr(kTimeIsUp)));
}

TEST_F(CaseIsOver, TheProbesAreOfTheCaseToo) {
  const TestServer server({.dialect = "vllm", .fault = "half_dead"});
  const Status opened = driver_.open(patient(server, {{"case_time", kShort}}));
  EXPECT_EQ(opened.code(), StatusCode::kInfra);
  EXPECT_THAT(opened.message(), AllOf(HasSubstr("probe"), HasSubstr(server.url()), HasSubstr(kTimeIsUp)));
}

TEST_F(CaseIsOver, TheTimeIsThatSinceTheCaseBeganNotSinceTheEngineWasOpened) {
  const TestServer server({.dialect = "vllm"});
  open(server);
  Driver late;
  const auto began = CaseTime::Clock::now() - std::chrono::seconds(100);
  const int64_t began_ns = std::chrono::nanoseconds(began.time_since_epoch()).count();
  ASSERT_TRUE(late.open(patient(server, {{"case_time", {{"seconds", 60}, {"began_ns", began_ns}}}})).ok());
  ASSERT_TRUE(late.submit(0, "a").ok());
  EXPECT_THAT(late.drain().failed.at(0).message(), HasSubstr("it was not sent: the case's time is up"));
}

TEST_F(CaseIsOver, AServerOfOursThatIsNotReadyByThenIsEnded) {
  for (const char* how : {"never_ready", "sleeps"}) {
    const tests::TemporaryFolder folder;
    const std::string program = ASSAY_BINARY_DIR "/tests/openai_test_server";
    Driver driver;
    const Status opened =
        driver.open({{"server",
                      {{"command", {"sh", "-c", "trap '' TERM; exec \"$0\" \"$@\"", program, "{port}", "vllm", how}},
                       {"ready_seconds", 300},
                       {"stop_seconds", 3600},
                       {"log", folder / "server.log"}}},
                     {"case_time", kShort}});
    EXPECT_EQ(opened.code(), StatusCode::kInfra) << how;
    EXPECT_THAT(opened.message(), AllOf(HasSubstr("the server is not ready after"), HasSubstr(kTimeIsUp))) << how;
    const size_t at = driver.log().find("process ");
    ASSERT_NE(at, std::string::npos) << driver.log();
    EXPECT_NE(::kill(std::stoi(driver.log().substr(at + 8)), 0), 0) << how << ": it is gone";
  }
}

// A run that is cancelled, or a limit of its own that is shorter, leaves a server the time that the case has.
TEST_F(CaseIsOver, AServerThatIsNotReadyHasTheTimeToEndThatIsLeftOfTheCase) {
  const tests::TemporaryFolder folder;
  const std::string up = folder / "up";
  const assay_host cancels_once_it_is_up = {
      .size = sizeof(assay_host),
      .abi_major = ASSAY_ABI_MAJOR,
      .abi_minor = ASSAY_ABI_MINOR,
      .reserved = 0,
      .context = const_cast<std::string*>(&up),
      .log = [](void*, int32_t, assay_str) {},
      .cancelled = [](void* path) -> int32_t { return std::filesystem::exists(*static_cast<std::string*>(path)); },
      .now_ns = [](void*) -> uint64_t { return 0; }};
  const Result<OpenaiOptions> options = parse_openai_options(json{
      {"server",
       {{"command",
         {"sh", "-c",
          "trap 'trap \"\" TERM; sleep 2; echo yes >\"$0.clean\"; exit' TERM; echo yes >\"$0\"; "
          "while :; do sleep 0.01; done",
          up, "{port}"}},
        {"ready_seconds", 300},
        {"stop_seconds", 300},
        {"log", folder / "server.log"}}},
      {"case_time", {{"seconds", 30}}}}.dump());
  ASSERT_TRUE(options.ok()) << options.status().message();
  const Result<std::unique_ptr<Server>> server = Server::start(*options, Host(&cancels_once_it_is_up));
  EXPECT_EQ(server.status().code(), StatusCode::kCancelled) << server.status().message();
  EXPECT_TRUE(std::filesystem::exists(up + ".clean")) << "it was killed while it cleaned up";
}

}  // namespace
}  // namespace assay::engines::openai
