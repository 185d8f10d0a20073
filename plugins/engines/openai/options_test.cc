#include "plugins/engines/openai/options.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "plugins/engines/openai/schedule.h"

namespace assay::engines::openai {
namespace {

using testing::HasSubstr;

std::string failure(const std::string& text) {
  const Result<OpenaiOptions> options = parse_openai_options(text);
  return options.ok() ? "" : options.status().message();
}

TEST(OpenaiOptions, UrlLosesWhatTheApiAdds) {
  EXPECT_EQ(parse_openai_options(R"({"url": "http://h:1/v1/"})")->url, "http://h:1");
  EXPECT_EQ(parse_openai_options(R"({"url": "https://h/base"})")->url, "https://h/base");
}

TEST(OpenaiOptions, RefusesWhatCannotBe) {
  EXPECT_THAT(failure("{}"), HasSubstr("url is not set"));
  EXPECT_THAT(failure(R"({"url": "ftp://h"})"), HasSubstr("expected http:// or https://"));
  EXPECT_THAT(failure(R"({"url": "http://me:secret@h"})"), HasSubstr("names a user"));
  EXPECT_THAT(failure(R"({"url": "http://h?x"})"), HasSubstr("goes on with a query"));
  EXPECT_THAT(failure(R"({"url": "http://h", "server": {"command": ["x", "{port}"]}})"), HasSubstr("both given"));
  EXPECT_THAT(failure(R"({"server": {"command": ["x"]}})"), HasSubstr("no {port}"));
  EXPECT_THAT(failure(R"({"server": {"command": []}})"), HasSubstr("server.command is empty"));
  EXPECT_THAT(failure(R"({"server": {"command": ["x", "{port}"], "ready": "health"}})"), HasSubstr("begins with '/'"));
  EXPECT_THAT(failure(R"({"server": {"comand": ["x"]}})"), HasSubstr("unknown member comand"));
  EXPECT_THAT(failure(R"({"url": "http://h", "headers": {"X-Api-Key": "a"}})"), HasSubstr("looks like a secret"));
  EXPECT_THAT(failure(R"({"url": "http://h", "headers": {"Authorization": "a"}})"), HasSubstr("looks like a secret"));
  EXPECT_THAT(failure(R"({"url": "http://h", "headers": {"A": "b\r\nC: d"}})"), HasSubstr("no header"));
  EXPECT_THAT(failure(R"({"url": "http://h", "api_key_header": "none"})"), HasSubstr("api_key_header"));
  EXPECT_THAT(failure(R"({"url": "http://h", "api": "chat", "prompt_logprobs": "echo"})"), HasSubstr("has not"));
  EXPECT_THAT(failure(R"({"url": "http://h", "concurrency": 0})"), HasSubstr("from 1 to 4096"));
  EXPECT_THAT(failure(R"({"url": "http://h", "messages": [1]})"), HasSubstr("a list of objects"));
  EXPECT_THAT(failure(R"({"url": "http://h", "insecure": true})"), HasSubstr("unknown member insecure"));
}

TEST(OpenaiOptions, AMessageShowsNoPartOfASecret) {
  for (const char* text :
       {R"({"url": "http://me:sesame@host"})", R"({"url": "ftp://me:sesame@host/x"})", R"({"url": "me:sesame@host"})",
        R"({"url": "http://host/v1?api_key=sesame"})", R"({"url": "http://host #sesame"})",
        R"({"url": "ftp://host?x=y@sesame"})", R"({"url": "http://host", "headers": {"X-Auth": "sesame"}})",
        R"({"url": "http://host", "headers": {"My-Cookie": "sesame"}})",
        R"({"url": "http://host", "headers": {"Proxy-Authorization": "sesame"}})",
        R"({"url": "http://host", "headers": ["Authorization: sesame"]})",
        R"({"url": "http://host", "headers": {"A": {"Authorization": "sesame"}}})",
        R"({"url": "http://host", "api_key_variable": "sk-sesame"})",
        R"({"url": "http://host", "headers": {"Authorization: Bearer sesame-0123456789012345": ""}})",
        R"({"url": "http://host", "headers": "Authorization: Bearer sesame-012345678901234567890123456789012345"})",
        R"({"url": "http://host", "server": ["--api-key", "sesame"]})", R"({"url": ["http://me:sesame@host"]})",
        R"(["sesame"])", R"({"url": "sesame)"}) {
    EXPECT_NE(failure(text), "") << text;
    EXPECT_THAT(failure(text), testing::Not(HasSubstr("sesame"))) << text;
  }
  EXPECT_THAT(failure(R"({"url": "ftp://me:sesame@host/x"})"), HasSubstr("'ftp://host/x'"));
  EXPECT_THAT(failure(R"({"url": "http://host", "api_key_variable": "1_KEY"})"), HasSubstr("is no name of a variable"));
  EXPECT_EQ(failure(R"({"url": "http://host", "api_key_variable": "_my_KEY1"})"), "");
}

// Every member that a request can have of the engine's own is refused, so that none is replaced without a word.
TEST(OpenaiOptions, ExtraBodySetsNothingThatTheEngineSets) {
  for (const char* name : {"prompt",
                           "messages",
                           "model",
                           "temperature",
                           "seed",
                           "n",
                           "stream",
                           "logprobs",
                           "stop",
                           "max_tokens",
                           "echo",
                           "top_p",
                           "top_k",
                           "top_logprobs",
                           "prompt_logprobs",
                           "stream_options",
                           "return_token_ids",
                           "return_tokens",
                           "return_tokens_as_token_ids",
                           "max_completion_tokens"}) {
    const nlohmann::json asked = {{"url", "http://h"}, {"extra_body", {{"min_p", 0}, {name, nullptr}}}};
    EXPECT_THAT(failure(asked.dump()), HasSubstr(std::string("extra_body has ") + name)) << name;
  }
  EXPECT_EQ(failure(R"({"url": "http://h", "extra_body": {"min_p": 0, "cache_prompt": false, "user": "me"}})"), "");
}

TEST(OpenaiOptions, TheSchemaNamesEveryMember) {
  const nlohmann::json schema = nlohmann::json::parse(kOpenaiOptionsSchema);
  const std::string known = failure(R"({"url": "http://h", "no_such": 1})");
  for (const auto& [name, about] : schema["properties"].items()) EXPECT_THAT(known, HasSubstr(name));
}

TEST(Schedule, KeepsToOrderAndRate) {
  OpenaiOptions options;
  const auto places = [](const std::vector<Arrival>& arrivals) {
    std::vector<size_t> list;
    for (const Arrival& arrival : arrivals) list.push_back(arrival.place);
    return list;
  };
  EXPECT_THAT(places(schedule(3, options)), testing::ElementsAre(0, 1, 2));
  options.order = "reversed";
  EXPECT_THAT(places(schedule(3, options)), testing::ElementsAre(2, 1, 0));
  options.order = "shuffled";
  EXPECT_THAT(places(schedule(50, options)), testing::UnorderedElementsAreArray(places(schedule(50, OpenaiOptions()))));
  EXPECT_NE(places(schedule(50, options)), places(schedule(50, OpenaiOptions())));
  EXPECT_EQ(places(schedule(50, options)), places(schedule(50, options)));
  options.requests_per_second = 100;
  EXPECT_NEAR(schedule(5000, options).back().seconds, 50, 5);
}

}  // namespace
}  // namespace assay::engines::openai
