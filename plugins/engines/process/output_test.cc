#include "plugins/engines/process/output.h"

#include <gmock/gmock.h>

#include <cmath>

namespace assay::engines {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsNan;
using testing::Not;

Result<Answers> answers(const std::string& text, std::vector<std::string> ids = {"0", "1"},
                        OutputFormat format = OutputFormat::kAuto) {
  return read_answers(text, "out", format, {.ids = std::move(ids)});
}

Answers good(const std::string& text, std::vector<std::string> ids = {"0", "1"}) {
  Result<Answers> read = answers(text, std::move(ids));
  EXPECT_TRUE(read.ok()) << read.status().message();
  return read ? *std::move(read) : Answers();
}

std::string refused(const std::string& text, std::vector<std::string> ids = {"0", "1"}) {
  const Status status = answers(text, std::move(ids)).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalid) << text;
  EXPECT_EQ(status.message().find('\n'), std::string::npos) << status.message();
  return status.message();
}

TEST(LinesOutput, AnswersInTheOrderOfTheRequests) {
  const Answers read = good("{\"text\": \"a\", \"tokens\": [1, 2]}\n\n{\"text\": \"b\"}\n");
  EXPECT_EQ(read.records[0].text, "a");
  EXPECT_THAT(*read.records[0].tokens, ElementsAre(1, 2));
  EXPECT_EQ(read.records[1].text, "b");
  EXPECT_FALSE(read.records[1].tokens.has_value());
}

TEST(LinesOutput, AnswersByIdInAnyOrderAndMissingOnesStayEmpty) {
  const Answers read = good("{\"id\": 2, \"text\": \"c\"}\n{\"request_id\": \"0\", \"text\": \"a\"}", {"0", "1", "2"});
  EXPECT_EQ(read.records[0].text, "a");
  EXPECT_EQ(read.records[1].id, "");
  EXPECT_EQ(read.records[2].text, "c");
}

TEST(LinesOutput, ReadsEveryMember) {
  std::string line =
      R"({"id": 0, "prompt": "p", "prompt_ids": [7, 8], "text": "t\u00e9", "tokens": [1], "prompt_logprobs": [-2.5],)"
      R"( "logprobs": [-0.5], "top_n": [{"x": -0.5, "y": -1}], "prompt_top_n": [{"z": -2.5}], "latency": 1.5,)"
      R"( "tpot": [0.25], "routing": [[[1, 2]], [[3, 4]]], "routing_positions": [0, 5], "ttft": 0.125})";
  const Answers read = good(line, {"0"});
  const RequestRecord& record = read.records[0];
  EXPECT_EQ(record.prompt, "p");
  EXPECT_THAT(*record.prompt_ids, ElementsAre(7, 8));
  EXPECT_EQ(record.text, "t\xc3\xa9");
  EXPECT_THAT(*record.prompt_logprobs, ElementsAre(-2.5));
  EXPECT_THAT(*record.generated_logprobs, ElementsAre(-0.5)) << "as many as tokens: those of the generated ones";
  EXPECT_THAT(record.top_n->counts, ElementsAre(2));
  EXPECT_THAT(record.prompt_top_n->counts, ElementsAre(1));
  EXPECT_EQ(record.latency, 1.5);
  EXPECT_THAT(*record.tpot, ElementsAre(0.25));
  EXPECT_THAT(record.routing->experts, ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(record.routing->positions, ElementsAre(0, 5));
  EXPECT_EQ(record.extra.at(0).first, "ttft");
}

TEST(LinesOutput, NumbersThatAreNoneComeThrough) {
  const Answers read = good("{\"tokens\": [1, 2, 3], \"logprobs\": [NaN, -Infinity, -1e-3]}", {"0"});
  EXPECT_THAT(*read.records[0].generated_logprobs, ElementsAre(IsNan(), -INFINITY, -0.001));
}

TEST(LinesOutput, AProgramMaySayThatARequestFailed) {
  const Answers read = good("{\"id\": 0, \"error\": \"too long\"}\n{\"id\": 1, \"error\": null, \"text\": \"x\"}");
  EXPECT_THAT(read.failures, ElementsAre("too long", ""));
}

struct Bad {
  const char* text;
  const char* expected;
};

TEST(LinesOutput, WhatIsWrongIsOneLineWithItsNumber) {
  const std::vector<Bad> all = {
      {"", "out is empty; expected results of 2 requests"},
      {" \n\t\n", "out is empty"},
      {"Loading model...\n{\"text\": \"a\"}", "out, line 1, character 1: no valid JSON: \"Loading model...\""},
      {"{\"text\": \"a\"}\ngarbage", "out, line 2, character 1: no valid JSON: \"garbage\""},
      {"{\"text\": \"a\"}\n{\"text\": \"b", "out, line 2, character"},
      {"{\"text\": \"a\"}\n[1]", "line 2: \"[1]\" is no JSON object"},
      {"{\"text\": \"a\"}\n{\"text\": \"\xff\"}", "line 2, character 11: invalid UTF-8"},
      {"{\"text\": 3}\n", "out, line 1"},
      {"{\"text\": \"a\", \"tokens\": [\"x\"]}", "out, line 1"},
      {"{\"text\": \"a\", \"tokens\": [1.5]}", "1.5"},
      {"{\"text\": \"a\", \"tokens\": [99999999999]}", "99999999999"},
      {"{\"text\": \"a\", \"logprobs\": 3}", "logprobs"},
      {"{\"text\": \"a\", \"logprobs\": [-1e779]}", "out, line 1: number overflow parsing '-1e779': \"{"},
      {"{\"text\": \"a\", \"generated_text\": \"b\"}", "more than once"},
      {"{\"id\": 0, \"text\": \"a\"}\n{\"id\": 0, \"text\": \"a\"}",
       "line 2: request 0 was answered before, on line 1"},
      {"{\"id\": 5, \"text\": \"a\"}", "line 1: request \"5\" was not asked for; asked for: 0, 1"},
      {"{\"id\": 1.5, \"text\": \"a\"}", "id is 1.5, expected a whole number"},
      {"{\"id\": 0, \"text\": \"a\"}\n{\"text\": \"a\"}", "line 2: has not an id, those before it have"},
      {"{\"text\": \"a\"}\n{\"text\": \"b\"}\n{\"text\": \"c\"}", "line 3: is one more than the 2 requests"},
  };
  for (const Bad& bad : all) EXPECT_THAT(refused(bad.text), HasSubstr(bad.expected)) << bad.text;
}

TEST(LinesOutput, NamesThatOccurTwiceOrContradictEachOtherAreRefused) {
  EXPECT_THAT(refused(R"({"id": 1, "id": 0, "text": "a"})"), HasSubstr("\"id\" occurs more than once"));
  EXPECT_THAT(refused(R"({"text": "a", "text": "b"})"), HasSubstr("\"text\" occurs more than once"));
  EXPECT_THAT(refused(R"({"error": null, "error": "b", "text": "b"})"), HasSubstr("\"error\" occurs more than once"));
  EXPECT_THAT(refused(R"({"id": 0, "request_id": 1, "text": "a"})"),
              HasSubstr("id is 0, but request_id is 1; leave one out"));
  EXPECT_TRUE(read_line_record(R"({"id": 0, "request_id": "0", "text": "a"})", "line 1").ok());
  EXPECT_EQ(read_line_record(R"({"id": null, "request_id": 3, "text": "a"})", "line 1")->id, "3");
}

TEST(LinesOutput, ALongLineIsCutInMessages) { EXPECT_LT(refused(std::string(100000, 'x')).size(), 300U); }

TEST(LinesOutput, ALineThatIsNestedTooDeepIsRefused) {
  std::string deep;
  for (int i = 0; i < 300'000; ++i) deep += "{\"a\":";
  deep += "1" + std::string(300'000, '}');
  EXPECT_THAT(refused("{\"id\": 0, \"error\": " + deep + "}"), HasSubstr("line 1: it is nested more than 256 deep"));
  EXPECT_THAT(refused("{\"id\": 0, \"text\": \"t\", \"x\": " + deep + "}"), HasSubstr("nested more than 256 deep"));
  EXPECT_THAT(refused("{\"0\": {\"generated_text\": \"t\", \"x\": " + deep + "}}"), HasSubstr("nested deeper than 64"));
}

TEST(GoldenOutput, AnyFormIsRead) {
  const char* const forms[] = {
      R"({"0": {"input_prompt": "p", "generated_text": "t", "generated_tokens": [1], "tpot": [0.5], "latency": 1,
          "logprobs": [-1.0, -2.0]}})",
      R"({"0": {"input_prompt": "p", "generated_text": "t", "generated_tokens": [1], "latency": 1, "ttft": 0.1,
          "cuda_graph_request_count_map": null, "step_count": 3, "top_n_logprobs": null, "prompt_top_n_logprobs": null,
          "prompt_logprobs": [-1.0], "generated_logprobs": [-2.0], "logprobs": [-1.0, -2.0]},
          "throughput": [1.0, 2.0], "mem-max-allocated-bytes": 5})",
      R"({"0": {"input_prompt": "p", "generated_text": "t", "generated_tokens": [1], "latency": 1, "logprobs": [-1, -2]}})",
      R"("{\"0\": {\"generated_text\": \"t\", \"generated_tokens\": [1]}}")",
  };
  for (const char* form : forms) {
    const Answers read = good(form, {"0"});
    EXPECT_EQ(read.records[0].text, "t") << form;
    EXPECT_THAT(*read.records[0].tokens, ElementsAre(1)) << form;
  }
  EXPECT_EQ(good(forms[1], {"0"}).quantities.size(), 2U);
}

TEST(GoldenOutput, WhatIsWrongIsNamed) {
  EXPECT_THAT(refused(R"({"0": {"generated_text": "t"}, "7": {"generated_text": "t"}, "8": {"generated_text": "t"}})"),
              HasSubstr("holds requests 7, 8 that were not asked for; asked for: 0, 1"));
  EXPECT_THAT(refused(R"({"0": {"generated_text": "t"}, "0": {"generated_text": "u"}})"),
              HasSubstr("request \"0\" occurs more than once"));
  EXPECT_THAT(refused("{\"0\": {\"generated_text\": \"t"), AllOf(HasSubstr("out:1:"), HasSubstr("the output begins")));
  EXPECT_THAT(refused("{\"0\": {\"generated_tokens\": \"t\"}}"), HasSubstr("generated_tokens"));
}

TEST(GoldenOutput, MayBeAskedForByName) {
  EXPECT_FALSE(answers("{\"text\": \"a\"}", {"0"}, OutputFormat::kGolden).ok());
  EXPECT_TRUE(answers("{\"text\": \"a\"}", {"0"}, OutputFormat::kLines).ok());
}

}  // namespace
}  // namespace assay::engines
