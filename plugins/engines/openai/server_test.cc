#include "plugins/engines/openai/server.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "plugins/engines/openai/testdata/driver.h"
#include "plugins/engines/openai/testdata/test_server.h"
#include "tests/temporary_folder.h"

namespace assay::engines::openai {
namespace {

using nlohmann::json;
using testing::HasSubstr;
namespace fs = std::filesystem;

const fs::path kProgram = fs::path(ASSAY_BINARY_DIR) / "tests/openai_test_server";

class OwnServer : public testing::Test {
 protected:
  json options(const std::vector<std::string>& words, double ready_seconds = 20) const {
    std::vector<std::string> command = {kProgram.string(), "{port}"};
    command.insert(command.end(), words.begin(), words.end());
    return {{"server", {{"command", command}, {"ready_seconds", ready_seconds}, {"stop_seconds", 1}, {"log", log()}}},
            {"prompt_logprobs", "off"},
            {"probe_prompt", "the quick brown fox"},
            {"backoff_seconds", 0.01}};
  }
  std::string log() const { return (dir_ / "server.log").string(); }
  // Of the server, from the line that says where it was started.
  static pid_t pid_in(const std::string& text) {
    const size_t at = text.find("process ");
    return at == std::string::npos ? -1 : std::stoi(text.substr(at + 8));
  }
  static bool lives(pid_t pid) {
    for (int i = 0; i < 100 && ::kill(pid, 0) == 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return ::kill(pid, 0) == 0;
  }

  const tests::TemporaryFolder folder_;
  const fs::path& dir_ = folder_.path();
};

TEST_F(OwnServer, IsStartedAwaitedUsedAndKeptForTheNextEngine) {
  const json given = options({"vllm", "", "0.3"});
  Driver first;
  const Status opened = first.open(given);
  ASSERT_TRUE(opened.ok()) << opened.message();
  ASSERT_TRUE(first.submit(0, "a").ok());
  EXPECT_EQ(first.drain().finished.count(0), 1U);
  first.close();
  Driver second;
  json other = given;
  other["concurrency"] = 2;  // other options, the same server
  ASSERT_TRUE(second.open(other).ok());
  EXPECT_THAT(second.log(), testing::Not(HasSubstr("started at")));
  ASSERT_TRUE(second.submit(0, "b").ok());
  EXPECT_EQ(second.drain().finished.count(0), 1U);
  EXPECT_EQ(::kill(pid_in(first.log()), 0), 0) << "it runs on until the process ends";
}

TEST_F(OwnServer, ThatEndsAtOnceIsInfraWithTheEndOfItsLog) {
  Driver driver;
  const Status opened = driver.open(options({"vllm", "exits"}));
  EXPECT_EQ(opened.code(), StatusCode::kInfra);
  EXPECT_THAT(opened.message(), HasSubstr("exit code 3"));
  EXPECT_THAT(opened.message(), HasSubstr("no such model"));
  EXPECT_TRUE(fs::exists(log()));
}

TEST_F(OwnServer, ThatIsNeverReadyIsEnded) {
  for (const char* how : {"never_ready", "sleeps"}) {
    Driver driver;
    const Status opened = driver.open(options({"vllm", how}, 0.5));
    EXPECT_EQ(opened.code(), StatusCode::kInfra) << how;
    EXPECT_THAT(opened.message(), HasSubstr("the server is not ready after")) << how;
    EXPECT_THAT(opened.message(), HasSubstr("starting")) << how << ": the end of its log";
    EXPECT_FALSE(lives(pid_in(driver.log()))) << how;
  }
}

TEST_F(OwnServer, ThatDiesInMidRunBreaksTheEngineAndIsStartedAnewForTheNext) {
  const json given = options({"vllm", "late_dies"});
  Driver driver;
  const Status opened = driver.open(given);
  ASSERT_TRUE(opened.ok()) << opened.message();
  ASSERT_TRUE(driver.submit(0, "late x").ok());
  const Ending ending = driver.drain();
  EXPECT_EQ(ending.broke.code(), StatusCode::kInternal);
  EXPECT_THAT(ending.broke.message(), HasSubstr("the server ended: exit code 7"));
  Driver again;
  ASSERT_TRUE(again.open(given).ok());
  EXPECT_THAT(again.log(), HasSubstr("started at"));
  ASSERT_TRUE(again.submit(0, "a").ok());
  EXPECT_EQ(again.drain().finished.count(0), 1U);
}

TEST_F(OwnServer, ThatWantsAKeyAndHasNoHealthIsReadyOnceItAnswers) {
  const std::string key = "k1k2k3k4k5k6";
  ::setenv("OPENAI_SERVER_TEST_KEY", key.c_str(), 1);
  Driver without;
  const Status refused = without.open(options({"vllm", "no_health", "0.1", key}, 5));
  EXPECT_THAT(refused.message(), HasSubstr("HTTP 401"));
  EXPECT_THAT(refused.message(), HasSubstr("in api_key_variable")) << "what is missing is said";
  json given = options({"vllm", "no_health", "0.2", key}, 5);
  given["api_key_variable"] = "OPENAI_SERVER_TEST_KEY";
  Driver driver;
  const Status opened = driver.open(given);
  ASSERT_TRUE(opened.ok()) << opened.message();
  EXPECT_THAT(driver.log(), HasSubstr("started at"));
  ASSERT_TRUE(driver.submit(0, "a").ok());
  EXPECT_EQ(driver.drain().finished.count(0), 1U);
  json path = options({"vllm", "no_health", "0.3", key}, 5);  // a path that is named has to answer 200
  path["server"]["ready"] = "/v1/models";
  path["api_key_variable"] = "OPENAI_SERVER_TEST_KEY";
  Driver named;
  EXPECT_TRUE(named.open(path).ok());
  ::unsetenv("OPENAI_SERVER_TEST_KEY");
  json anew = options({"vllm", "no_health", "0.4", key}, 5);
  anew["api_key_variable"] = "OPENAI_SERVER_TEST_KEY";
  Driver unset;
  EXPECT_THAT(unset.open(anew).message(), HasSubstr("which is not set"));
}

TEST_F(OwnServer, ItsSecretsAreNeitherInMessagesNorInItsLog) {
  ::setenv("OPENAI_SERVER_TEST_LOGIN", "v1v2v3v4v5v6", 1);  // a name that tells nothing, but for the option
  for (const char* how : {"exits", "never_ready", ""}) {
    json given = options({"vllm", how}, *how == 'n' ? 1 : 20);
    json& command = given["server"]["command"];
    const std::string chatter =
        "for i in 1 2 3 4 5; do echo \"token $HUB_TOKEN login $OPENAI_SERVER_TEST_LOGIN\"; done; ";
    std::vector<std::string> words = {"sh", "-c", chatter + "exec \"$@\"", "sh"};
    for (const json& word : command) words.push_back(word.get<std::string>());
    command = words;
    given["server"]["environment"] = {{"HUB_TOKEN", "k1k2k3k4k5k6"}};
    given["api_key_variable"] = "OPENAI_SERVER_TEST_LOGIN";
    const std::string path = log() + how;
    given["server"]["log"] = path;
    {
      Host host;
      const Result<OpenaiOptions> parsed = parse_openai_options(given.dump());
      ASSERT_TRUE(parsed.ok()) << parsed.status().message();
      const Result<std::unique_ptr<Server>> server = Server::start(*parsed, host);
      EXPECT_EQ(server.ok(), *how == '\0') << how;
      if (!server) {
        EXPECT_THAT(server.status().message(), HasSubstr("token *** login ***")) << how;
        for (const char* part : {"k1", "k6", "v1", "v6"}) {
          EXPECT_THAT(server.status().message(), testing::Not(HasSubstr(part))) << how;
        }
      }
    }
    std::ifstream in(path);
    const std::string text(std::istreambuf_iterator<char>(in), {});
    EXPECT_THAT(text, HasSubstr("token *** login ***")) << how;
    EXPECT_THAT(text, testing::Not(testing::AnyOf(HasSubstr("k1"), HasSubstr("v1")))) << how;
  }
}

// Between the choice of a port and the server's own bind anybody may take it.
TEST_F(OwnServer, WhosePortSomebodyElseTakesGetsAnother) {
  const std::string port_file = (dir_ / "port").string();
  const std::string taken_file = (dir_ / "taken").string();
  json given = options({"vllm"}, 300);
  std::vector<std::string> words = {"sh",
                                    "-c",
                                    "if [ ! -e \"$1\" ]; then echo \"$4\" >\"$1.new\"; mv \"$1.new\" \"$1\"; "
                                    "until [ -e \"$2\" ]; do sleep 0.01; done; exit 1; fi; shift 2; exec \"$@\"",
                                    "sh",
                                    port_file,
                                    taken_file};
  for (const json& word : given["server"]["command"]) words.push_back(word.get<std::string>());
  given["server"]["command"] = words;
  std::unique_ptr<TestServer> other;
  std::atomic<bool> over = false;  // then nobody tells a port any more
  std::thread taker([&] {
    while (!fs::exists(port_file)) {
      if (over) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    int port = 0;
    std::ifstream(port_file) >> port;
    other = std::make_unique<TestServer>(TestServerOptions{.fault = "never_ready", .port = port});
    std::ofstream(taken_file) << "yes";
  });
  Driver driver;
  const Status opened = driver.open(given);
  over = true;
  taker.join();
  ASSERT_TRUE(opened.ok()) << opened.message();
  ASSERT_NE(other, nullptr);
  EXPECT_THAT(driver.log(), HasSubstr("somebody else took port " + std::to_string(other->port())));
  ASSERT_TRUE(driver.submit(0, "a").ok());
  EXPECT_EQ(driver.drain().finished.count(0), 1U);
}

TEST_F(OwnServer, ThatDoesNotExistIsSaid) {
  Driver driver;
  const Status opened = driver.open({{"server", {{"command", {"/no/such/server", "{port}"}}}}});
  EXPECT_EQ(opened.code(), StatusCode::kNotFound);
  EXPECT_THAT(opened.message(), HasSubstr("/no/such/server"));
}

}  // namespace
}  // namespace assay::engines::openai
