#include "plugins/engines/openai/engine.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <numeric>

#include "plugins/engines/openai/testdata/driver.h"
#include "plugins/engines/openai/testdata/test_server.h"

namespace assay::engines::openai {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

json options_for(const TestServer& server, const json& more = json::object()) {
  json options = {{"url", server.url()},      {"backoff_seconds", 0.01}, {"probe_prompt", "the quick brown fox"},
                  {"first_byte_seconds", 10}, {"between_seconds", 10},   {"request_seconds", 20}};
  options.update(more);
  return options;
}

// What becomes of a request "late x" to a server that misbehaves with such prompts alone.
Status fate(const std::string& fault, const json& more = json::object(), const std::string& dialect = "vllm") {
  const TestServer server({.dialect = dialect, .fault = "late_" + fault});
  Driver driver;
  const Status opened = driver.open(options_for(server, more));
  EXPECT_TRUE(opened.ok()) << fault << ": " << opened.message();
  if (!opened.ok()) return opened;
  EXPECT_TRUE(driver.submit(0, "late x").ok());
  EXPECT_TRUE(driver.submit(1, "a").ok());
  const Ending ending = driver.drain();
  EXPECT_TRUE(ending.broke.ok()) << fault << ": " << ending.broke.message();
  EXPECT_EQ(ending.finished.count(1), 1U) << fault << ": the other request goes on";
  EXPECT_EQ(ending.failed.count(0), 1U) << fault;
  return ending.failed.count(0) > 0 ? ending.failed.at(0) : Status();
}

TEST(Openai, FindsOutWhatAnHonestServerHas) {
  const TestServer server({.dialect = "vllm"});
  Driver driver;
  const Status opened = driver.open(options_for(server));
  ASSERT_TRUE(opened.ok()) << opened.message();
  EXPECT_TRUE(driver.can(kOpenaiCapabilities)) << driver.facts().dump(1);
  const json facts = driver.facts();
  EXPECT_EQ(facts["model"], "letters");
  EXPECT_EQ(facts["server"], "test");
  EXPECT_EQ(facts["greedy"], "two equal requests gave the same");
  EXPECT_THAT(facts["top_n"], HasSubstr("10 of 20"));
  EXPECT_THAT(facts["prompt_logprobs"], HasSubstr("by echo"));
  EXPECT_EQ(facts["stop"], "yes");
  EXPECT_EQ(facts["stream"], "as in one piece");
  EXPECT_THAT(driver.log(), HasSubstr("greedy"));
}

TEST(Openai, GivesTextTokensLogprobsAndTimes) {
  const TestServer server({.dialect = "vllm", .token_delay = 0.01});
  Driver driver;
  ASSERT_TRUE(driver.open(options_for(server, {{"prompt_logprobs", "off"}})).ok());
  ASSERT_TRUE(driver.submit(7, "xyz ,a", 4, 2).ok());
  const Ending ending = driver.drain();
  ASSERT_EQ(ending.finished.count(7), 1U) << (ending.failed.empty() ? "" : ending.failed.begin()->second.message());
  const EngineResult& result = ending.finished.at(7);
  EXPECT_EQ(result.text, "bcde");
  EXPECT_THAT(result.tokens, ElementsAre('b', 'c', 'd', 'e'));
  EXPECT_THAT(result.generated_logprobs, ElementsAre(-0.25, -0.25, -0.25, -0.25));
  EXPECT_THAT(result.generated_top_n.counts, ElementsAre(2, 2, 2, 2));
  EXPECT_EQ(result.generated_top_n.texts[0], "b");
  ASSERT_EQ(result.tpot.size(), 4U);
  const double sum = std::accumulate(result.tpot.begin(), result.tpot.end(), 0.0);
  EXPECT_GE(sum, 0.03) << "the last of them was sent three pauses after the first";
  EXPECT_GE(result.latency, sum);
  EXPECT_EQ(ending.tokens, 4U) << "one event a token";
  EXPECT_EQ(json::parse(result.extra)["finish_reason"], "length");
}

TEST(Openai, GivesLogprobsOfThePromptByEchoAndByList) {
  for (const char* way : {"echo", "list"}) {
    const TestServer server({.dialect = "vllm"});
    Driver driver;
    const Status opened = driver.open(options_for(server, {{"prompt_logprobs", way}}));
    ASSERT_TRUE(opened.ok()) << opened.message();
    ASSERT_TRUE(driver.submit(0, "pq", 3).ok());
    const Ending ending = driver.drain();
    ASSERT_EQ(ending.finished.count(0), 1U) << way << ending.failed.at(0).message();
    EXPECT_EQ(ending.finished.at(0).prompt_logprobs.size(), 2U) << way;
    EXPECT_EQ(ending.finished.at(0).text, "rst") << way;
    if (std::string(way) == "list") {
      EXPECT_THAT(ending.finished.at(0).prompt_ids, ElementsAre(1, 'p', 'q'));
    }
  }
}

TEST(Openai, SpeaksTheDialectOfLlamaAndFindsItsEchoMissing) {
  const TestServer server({.dialect = "llama"});
  Driver driver;
  const Status opened = driver.open(options_for(server));
  ASSERT_TRUE(opened.ok()) << opened.message();
  EXPECT_TRUE(driver.can(ASSAY_CAP_TOKENS | ASSAY_CAP_LOGPROBS | ASSAY_CAP_TOP_N | ASSAY_CAP_SEED));
  EXPECT_FALSE(driver.can(ASSAY_CAP_PROMPT_LOGPROBS));
  EXPECT_THAT(driver.facts()["prompt_logprobs"], HasSubstr("the server ignores echo"));
  EXPECT_THAT(driver.facts()["bos"], HasSubstr("of /tokenize"));
  EXPECT_THAT(driver.facts()["tokens"], HasSubstr("/detokenize reads as the text"));
  ASSERT_TRUE(driver.submit(0, "ignored", 3, 1, {'m', 'n'}).ok()) << "a prompt as ids";
  const Ending ending = driver.drain();
  ASSERT_EQ(ending.finished.count(0), 1U) << ending.failed.at(0).message();
  EXPECT_EQ(ending.finished.at(0).text, "opq");
  EXPECT_THAT(ending.finished.at(0).tokens, ElementsAre('o', 'p', 'q'));
}

TEST(Openai, TakesIdsThatAreSpelledInsteadOfTexts) {
  const TestServer server({.dialect = "spelled"});
  for (const bool keep : {false, true}) {
    Driver driver;
    const Status opened = driver.open(options_for(server, {{"keep_end_token", keep}, {"stream", keep}}));
    ASSERT_TRUE(opened.ok()) << opened.message();
    EXPECT_TRUE(driver.can(ASSAY_CAP_TOKENS | ASSAY_CAP_LOGPROBS | ASSAY_CAP_TOP_N | ASSAY_CAP_PROMPT_LOGPROBS))
        << driver.facts().dump(1);
    EXPECT_EQ(driver.facts()["tokens"], "yes: ids, instead of the texts of tokens");
    ASSERT_TRUE(driver.submit(0, "xyz ,a", 4, 2).ok());
    ASSERT_TRUE(driver.submit(1, "brief a").ok());
    const Ending ending = driver.drain();
    ASSERT_EQ(ending.finished.size(), 2U) << ending.failed.begin()->second.message();
    const EngineResult& whole = ending.finished.at(0);
    EXPECT_EQ(whole.text, "bcde");
    EXPECT_THAT(whole.tokens, ElementsAre('b', 'c', 'd', 'e'));
    EXPECT_THAT(whole.prompt_ids, ElementsAre(1, 'x', 'y', 'z', ' ', ',', 'a'));
    EXPECT_THAT(whole.generated_top_n.counts, ElementsAre(2, 2, 2, 2));
    EXPECT_EQ(whole.generated_top_n.ids[0], 'b');
    const EngineResult& brief = ending.finished.at(1);
    EXPECT_EQ(brief.text, "bcd");
    if (keep) {
      EXPECT_THAT(brief.tokens, ElementsAre('b', 'c', 'd', kEnd));
    } else {
      EXPECT_THAT(brief.tokens, ElementsAre('b', 'c', 'd')) << "the token that ended the text is none of it";
    }
    EXPECT_EQ(brief.generated_logprobs.size(), brief.tokens.size());
  }
  Driver streams;  // without logprobs of the prompt, requests are streamed
  ASSERT_TRUE(streams.open(options_for(server, {{"prompt_logprobs", "off"}})).ok());
  ASSERT_TRUE(streams.submit(0, "brief a").ok());
  const Ending ending = streams.drain();
  ASSERT_EQ(ending.finished.count(0), 1U) << ending.failed.at(0).message();
  EXPECT_THAT(ending.finished.at(0).tokens, ElementsAre('b', 'c', 'd'));
}

TEST(Openai, TakesTextAloneWhereThereIsNothingElse) {
  const TestServer server({.dialect = "text"});
  Driver driver;
  ASSERT_TRUE(driver.open(options_for(server)).ok());
  EXPECT_TRUE(driver.can(ASSAY_CAP_TEXT));
  EXPECT_FALSE(driver.can(ASSAY_CAP_LOGPROBS) || driver.can(ASSAY_CAP_TOKENS) || driver.can(ASSAY_CAP_TOP_N));
  EXPECT_THAT(driver.facts()["logprobs"], HasSubstr("none came"));
  ASSERT_TRUE(driver.submit(0, "a", 3).ok());
  const Ending ending = driver.drain();
  EXPECT_EQ(ending.finished.at(0).text, "bcd");
  EXPECT_THAT(ending.finished.at(0).tokens, IsEmpty());
}

TEST(Openai, ChatsWithTemplateMessages) {
  const TestServer server({.dialect = "vllm"});
  Driver driver;
  const Status opened = driver.open(
      options_for(server, {{"api", "chat"}, {"messages", {{{"role", "system"}, {"content", "be brief"}}}}}));
  ASSERT_TRUE(opened.ok()) << opened.message();
  ASSERT_TRUE(driver.submit(0, "u", 2, 1).ok());
  const Ending ending = driver.drain();
  ASSERT_EQ(ending.finished.count(0), 1U) << ending.failed.at(0).message();
  EXPECT_EQ(ending.finished.at(0).text, "vw");
}

TEST(Openai, ProbesFindOutFaults) {
  const auto facts_of = [](const std::string& fault, const std::string& dialect) {
    const TestServer server({.dialect = dialect, .fault = fault});
    Driver driver;
    const json quick = fault == "half_dead" ? json{{"first_byte_seconds", 0.5}} : json::object();
    const Status opened = driver.open(options_for(server, quick));
    return opened.ok() ? driver.facts() : json{{"failure", opened.message()}};
  };
  EXPECT_THAT(facts_of("ignores_echo", "openai")["prompt_logprobs"], HasSubstr("ignores echo"));
  EXPECT_THAT(facts_of("echo_without_logprobs", "openai")["prompt_logprobs"], HasSubstr("without its logprobs"));
  EXPECT_THAT(facts_of("drops_logprobs", "openai")["logprobs"], HasSubstr("none came"));
  EXPECT_THAT(facts_of("nan_logprob", "openai")["logprobs"], HasSubstr("no JSON"));
  EXPECT_THAT(facts_of("null_logprob", "openai")["logprobs"], HasSubstr("expected a finite number"));
  EXPECT_THAT(facts_of("positive_logprob", "openai")["logprobs"], HasSubstr("at most 0"));
  EXPECT_THAT(facts_of("random", "openai")["seed"], HasSubstr("one seed gave"));
  EXPECT_THAT(facts_of("ignores_stop", "openai")["stop"], HasSubstr("with the stop word"));
  EXPECT_THAT(facts_of("wrong_ids", "vllm")["tokens"], HasSubstr("by /detokenize"));
  EXPECT_THAT(facts_of("double_bos", "openai")["failure"], HasSubstr("(BOS) there twice"));
  EXPECT_THAT(facts_of("double_bos", "llama")["failure"], HasSubstr("(BOS) there twice"));
  EXPECT_THAT(facts_of("more_tokens", "openai")["failure"], HasSubstr("asked for were at most"));
  EXPECT_THAT(facts_of("truncates", "openai")["failure"], HasSubstr("truncated"));
  EXPECT_THAT(facts_of("two_models", "openai")["failure"], HasSubstr("2 models (letters, other), expected one"));
  EXPECT_THAT(facts_of("500s", "openai")["failure"], HasSubstr("CUDA error: out of luck"));
  EXPECT_THAT(facts_of("half_dead", "openai")["failure"], HasSubstr("no byte of an answer"));
}

TEST(Openai, AWrongAnswerIsOneClearLine) {
  const json off = {{"prompt_logprobs", "off"}, {"stream", false}};
  for (const auto& [fault, line] : {std::pair("drops_logprobs", "none came"),
                                    {"truncates", "truncated"},
                                    {"drops_text", "do not read like the text"},
                                    {"more_tokens", "asked for were at most 8"},
                                    {"wrong_usage", "usage says"},
                                    {"invalid_utf8", "no UTF-8 at byte"},
                                    {"no_json", "no JSON"},
                                    {"no_choices", "no choices"},
                                    {"two_choices", "2 choices"},
                                    {"wrong_index", "index"},
                                    {"no_finish", "no finish_reason"},
                                    {"other_model", "is of model \"other\", those before were of \"letters\""},
                                    {"error_in_200", "the engine is dead"},
                                    {"html", "content-type is 'text/html'"},
                                    {"gzip", "content-encoding 'gzip'"},
                                    {"redirects", "redirects are not followed"},
                                    {"400s", "HTTP 400: \"no\""}}) {
    const Status failed = fate(fault, off);
    EXPECT_EQ(failed.code(), StatusCode::kInvalid) << fault << ": " << failed.message();
    EXPECT_THAT(failed.message(), HasSubstr(line)) << fault;
    EXPECT_THAT(failed.message(), Not(HasSubstr("\n"))) << fault;
  }
}

TEST(Openai, AWrongStreamIsOneClearLine) {
  const json off = {{"prompt_logprobs", "off"}};
  for (const auto& [fault, line] :
       {std::pair("no_done", "without [DONE]"),
        {"invalid_utf8", "no JSON object in UTF-8"},
        {"garbage_lines", "no line of server-sent events"},
        {"error_midway", "lost"},
        {"foreign_chunk", "its id is \"cmpl-of-others\", others have \"cmpl-late x\""},
        {"chunk_of_other", "it is of model \"other\", those before were of \"letters\""},
        {"other_model", "is of model \"other\", those before were of \"letters\""},
        {"goes_on", "behind a finish_reason"},
        {"endless", "asked for were at most 8"},
        {"stream_as_json", "content-type is 'application/json', expected text/event-stream"}}) {
    const Status failed = fate(fault, off);
    EXPECT_EQ(failed.code(), StatusCode::kInvalid) << fault << ": " << failed.message();
    EXPECT_THAT(failed.message(), HasSubstr(line)) << fault;
  }
}

TEST(Openai, TheModelThatWasAskedForAnswersByANameThatIsItsOwn) {
  const json asked = {{"model", "letters"}, {"prompt_logprobs", "off"}};
  const auto opened = [](const std::string& fault, const json& more) {
    const TestServer server({.dialect = "vllm", .fault = fault});
    Driver driver;
    const Status status = driver.open(options_for(server, more));
    return status.ok() ? driver.facts().value("model", "") : status.message();
  };
  EXPECT_THAT(opened("other_model", asked), HasSubstr("is of model \"other\", asked for was \"letters\""));
  EXPECT_EQ(opened("", asked), "letters");
  for (const char* alias : {"alias_listed", "alias_by_root"}) {
    EXPECT_EQ(opened(alias, asked), "letters, which answers as other") << alias;
  }
  EXPECT_EQ(opened("other_model", {{"prompt_logprobs", "off"}}), "letters, which answers as other")
      << "none was asked for by name";
}

TEST(Openai, ChunksOfAStreamMayHaveAnIdEach) {
  const TestServer server({.dialect = "vllm", .fault = "an_id_each"});
  Driver driver;
  ASSERT_TRUE(driver.open(options_for(server, {{"prompt_logprobs", "off"}})).ok());
  ASSERT_TRUE(driver.submit(0, "a", 4).ok());
  const Ending ending = driver.drain();
  ASSERT_EQ(ending.finished.count(0), 1U) << ending.failed.at(0).message();
  EXPECT_EQ(ending.finished.at(0).text, "bcde");
}

TEST(Openai, AFailureOfTheTransportIsOfTheMachine) {
  const json off = {{"prompt_logprobs", "off"}, {"first_byte_seconds", 1.5}, {"between_seconds", 1.5}};
  for (const auto& [fault, line] : {std::pair("stalls", "no byte of an answer for"),
                                    {"stalls_midway", "silent after"},
                                    {"cuts", "bytes of the answer had come"},
                                    {"garbage_chunks", "POST http://127.0.0.1"},
                                    {"closes", "after 3 tries"},
                                    {"long_busy", "it asks to wait 3000 s"}}) {
    const Status failed = fate(fault, off);
    EXPECT_EQ(failed.code(), StatusCode::kInfra) << fault << ": " << failed.message();
    EXPECT_THAT(failed.message(), HasSubstr(line)) << fault;
  }
  EXPECT_THAT(fate("busy_forever", off).message(), HasSubstr("it sent no Retry-After"));
  EXPECT_THAT(fate("busy_before", off).message(), HasSubstr("its Retry-After is \"-1\", which is no time to wait"));
  EXPECT_EQ(fate("500s", off).code(), StatusCode::kInternal);
  const Status huge = fate("huge", {{"prompt_logprobs", "off"}, {"stream", false}, {"most_answer_mb", 1}});
  EXPECT_THAT(huge.message(), HasSubstr("an answer of more than 1048576 bytes"));
}

TEST(Openai, TriesAgainOnlyWhereNoAnswerHadBegun) {
  const json off = {{"prompt_logprobs", "off"}};
  for (const char* fault : {"closes", "busy"}) {
    const TestServer server({.dialect = "vllm", .fault = std::string("late_") + fault, .fail_first = 2});
    Driver driver;
    ASSERT_TRUE(driver.open(options_for(server, off)).ok());
    const int before = server.asked();
    ASSERT_TRUE(driver.submit(0, "late x").ok());
    const Ending ending = driver.drain();
    ASSERT_EQ(ending.finished.count(0), 1U) << fault << ": " << ending.failed.at(0).message();
    EXPECT_EQ(server.asked() - before, 3) << fault;
    // libcurl itself takes a fresh connection where a kept one turns out to be closed
    EXPECT_GE(json::parse(ending.finished.at(0).extra)["engine_counters"]["retries"], 1);
    EXPECT_THAT(driver.log(), HasSubstr("try 2 of 3"));
  }
  const TestServer server({.dialect = "vllm", .fault = "late_cuts"});
  Driver driver;
  ASSERT_TRUE(driver.open(options_for(server, off)).ok());
  const int before = server.asked();
  ASSERT_TRUE(driver.submit(0, "late x").ok());
  EXPECT_EQ(driver.drain().failed.count(0), 1U);
  EXPECT_EQ(server.asked() - before, 1) << "an answer that was cut is not asked for again";
}

TEST(Openai, AServerThatIsNotThereIsInfra) {
  Driver driver;
  const Status opened = driver.open({{"url", "http://127.0.0.1:1"}, {"backoff_seconds", 0.01}});
  EXPECT_EQ(opened.code(), StatusCode::kInfra);
  EXPECT_THAT(opened.message(), HasSubstr("GET http://127.0.0.1:1/v1/models: Failed to connect"));
}

TEST(Openai, RefusesWhatTheServerWasFoundNotToKeepTo) {
  {
    const TestServer server({.dialect = "vllm", .fault = "random"});
    Driver driver;
    ASSERT_TRUE(driver.open(options_for(server)).ok());
    EXPECT_THAT(driver.submit(0, "a", 8, 0, {}, 40).message(), HasSubstr("does not keep to it"));
    EXPECT_TRUE(driver.submit(1, "a").ok()) << "greedy needs no seed";
    EXPECT_THAT(driver.submit(2, "a", 8, 15).message(), HasSubstr("gives at most 10"));
  }
  const TestServer server({.dialect = "vllm", .fault = "ignores_stop"});
  Driver driver;
  ASSERT_TRUE(driver.open(options_for(server, {{"stop_words", {"f"}}})).ok());
  EXPECT_THAT(driver.submit(0, "a").message(), HasSubstr("does not keep to stop words"));
}

TEST(Openai, StopWordsEndATextAndAreNotPartOfIt) {
  const TestServer server({.dialect = "vllm"});
  Driver driver;
  ASSERT_TRUE(driver.open(options_for(server, {{"stop_words", {"ef"}}, {"prompt_logprobs", "off"}})).ok());
  ASSERT_TRUE(driver.submit(0, "a").ok());
  const Ending ending = driver.drain();
  ASSERT_EQ(ending.finished.count(0), 1U) << ending.failed.at(0).message();
  EXPECT_EQ(ending.finished.at(0).text, "bcd");
  EXPECT_EQ(json::parse(ending.finished.at(0).extra)["finish_reason"], "stop");
}

TEST(Openai, SendsAsManyAtOnceAsToldInTheOrderThatWasTold) {
  for (const int concurrency : {1, 4}) {
    const TestServer server({.dialect = "vllm", .held = concurrency});
    Driver driver;
    const json more = {{"concurrency", concurrency}, {"order", "reversed"}, {"prompt_logprobs", "off"}};
    ASSERT_TRUE(driver.open(options_for(server, more)).ok());
    const size_t before = server.prompts().size();
    for (uint64_t id = 0; id < 8; ++id) ASSERT_TRUE(driver.submit(id, "held" + std::to_string(id)).ok());
    const Ending ending = driver.drain();
    EXPECT_EQ(ending.finished.size(), 8U);
    EXPECT_EQ(server.most_at_once(), concurrency);
    if (concurrency == 1) {
      EXPECT_EQ(server.prompts()[before], "held7");
    }
    EXPECT_EQ(json::parse(ending.finished.at(3).extra)["engine_counters"]["batch"], concurrency);
  }
}

TEST(Openai, TheKeyComesFromItsVariableAndIsShownNowhere) {
  const std::string key = "sk-do-not-show-4711";
  ::setenv("ASSAY_TEST_API_KEY", key.c_str(), 1);
  const json with_key = {{"api_key_variable", "ASSAY_TEST_API_KEY"}, {"prompt_logprobs", "off"}, {"stream", false}};
  const TestServer server({.dialect = "vllm", .fault = "late_echoes_key", .key = key});
  Driver driver;
  const Status opened = driver.open(options_for(server, with_key));
  ASSERT_TRUE(opened.ok()) << opened.message();
  ASSERT_TRUE(driver.submit(0, "late x").ok());
  const Ending ending = driver.drain();
  ASSERT_EQ(ending.failed.count(0), 1U);
  EXPECT_THAT(ending.failed.at(0).message(), HasSubstr("the answer holds the API key"));
  EXPECT_THAT(driver.log() + driver.facts().dump() + ending.failed.at(0).message(), Not(HasSubstr(key)));
  Driver without;
  EXPECT_THAT(without.open(options_for(server)).message(), HasSubstr("HTTP 401"));
  ::unsetenv("ASSAY_TEST_API_KEY");
  EXPECT_THAT(without.open(options_for(server, {{"api_key_variable", "ASSAY_TEST_NO_KEY"}})).message(),
              HasSubstr("which is not set"));
}

TEST(Openai, NoPartOfTheKeyIsShownWhereAnAnswerIsCut) {
  const std::string key = "sk-do-not-show-" + std::string(40, '7');
  ::setenv("ASSAY_TEST_API_KEY", key.c_str(), 1);
  const json with_key = {{"api_key_variable", "ASSAY_TEST_API_KEY"}, {"prompt_logprobs", "off"}};
  const TestServer late({.dialect = "vllm", .fault = "late_tells_key", .key = key});
  const TestServer models({.dialect = "vllm", .fault = "models_tell_key", .key = key});
  Driver driver;
  const Status opened = driver.open(options_for(late, with_key));
  ASSERT_TRUE(opened.ok()) << opened.message();
  ASSERT_TRUE(driver.submit(0, "late x").ok());
  const Ending ending = driver.drain();
  ASSERT_EQ(ending.failed.count(0), 1U);
  EXPECT_THAT(ending.failed.at(0).message(), HasSubstr("Authorization: Bearer ***"));
  Driver other;
  const Status refused = other.open(options_for(models, with_key));
  EXPECT_THAT(refused.message(), HasSubstr("HTTP 404"));
  EXPECT_THAT(refused.message(), HasSubstr("***"));
  EXPECT_THAT(ending.failed.at(0).message() + refused.message() + driver.log(), Not(HasSubstr("sk-do")));
  ::unsetenv("ASSAY_TEST_API_KEY");
}

TEST(Openai, CancelsAndForgets) {
  const TestServer server({.dialect = "vllm", .fault = "late_stalls"});
  Driver driver;
  ASSERT_TRUE(driver.open(options_for(server, {{"prompt_logprobs", "off"}})).ok());
  ASSERT_TRUE(driver.submit(0, "late x").ok());
  std::vector<EngineEvent> events;
  ASSERT_TRUE(driver.engine().step(&events).ok());
  EXPECT_TRUE(driver.engine().cancel(0).ok());
  EXPECT_EQ(driver.engine().cancel(9).code(), StatusCode::kNotFound);
  EXPECT_EQ(driver.drain().failed.at(0).code(), StatusCode::kCancelled);
  ASSERT_TRUE(driver.submit(1, "late y").ok());
  ASSERT_TRUE(driver.engine().step(&events).ok());
  EXPECT_TRUE(driver.engine().reset().ok());
  EXPECT_EQ(driver.engine().pending(), 0U);
  ASSERT_TRUE(driver.submit(2, "b").ok());
  EXPECT_EQ(driver.drain().finished.count(2), 1U);
}

}  // namespace
}  // namespace assay::engines::openai
