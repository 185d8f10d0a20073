#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "assay/golden.h"

namespace assay {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

std::string error_of(std::string_view json) {
  const Result<ResultSet> set = read_results_text(json, "g.json");
  EXPECT_FALSE(set.ok()) << json;
  if (set.ok()) return "";
  EXPECT_EQ(set.status().code(), StatusCode::kInvalid);
  EXPECT_THAT(set.status().message(), AllOf(StartsWith("g.json"), Not(HasSubstr("\n"))));
  return set.status().message();
}

TEST(BrokenResults, FlatFormIsNamed) {
  EXPECT_THAT(error_of(R"({"id": "0", "generated_text": "t", "generated_tokens": [1]})"), HasSubstr("FLAT"));
  EXPECT_THAT(error_of(R"({"generated_tokens": [1], "latency": 1.0})"), HasSubstr("FLAT"));
  EXPECT_THAT(error_of(R"({"latency": 1.0, "generated_tokens": [1]})"), HasSubstr("FLAT"));
}

TEST(BrokenResults, ARequestThatIsNoObjectIsNamed) {
  EXPECT_THAT(error_of(R"({"0": 5})"), AllOf(HasSubstr("\"0\""), HasSubstr("the number 5"), HasSubstr("a request")));
  EXPECT_THAT(error_of(R"({"0": [1, 2]})"), HasSubstr("a list"));
  EXPECT_THAT(error_of(R"({"foo": "bar"})"), AllOf(HasSubstr("\"foo\""), HasSubstr("\"bar\"")));
  EXPECT_THAT(error_of(R"({"0": null})"), HasSubstr("null"));
}

TEST(BrokenResults, ATopLevelThatIsNoObjectIsNamed) {
  EXPECT_THAT(error_of("[1, 2]"), HasSubstr("top level is a list"));
  EXPECT_THAT(error_of("12"), HasSubstr("top level is the number 12"));
  EXPECT_THAT(error_of("NaN"), HasSubstr("top level is the number NaN"));
  EXPECT_THAT(error_of("true"), HasSubstr("top level is true"));
  EXPECT_THAT(error_of("null"), HasSubstr("top level is null"));
  EXPECT_THAT(error_of(" \n"), HasSubstr("is empty"));
  EXPECT_THAT(error_of(R"("\"x\"")"), HasSubstr("one more string"));
}

TEST(BrokenResults, WrongTypesNameRequestFieldAndIndex) {
  EXPECT_THAT(error_of(R"({"7": {"generated_tokens": [1, 2, "x"]}})"),
              HasSubstr("request 7: generated_tokens[2] is the string \"x\", expected an id that fits int32"));
  EXPECT_THAT(error_of(R"({"7": {"generated_tokens": [1, 2.5]}})"), HasSubstr("generated_tokens[1] is the number 2.5"));
  EXPECT_THAT(error_of(R"({"7": {"generated_tokens": [true]}})"), HasSubstr("generated_tokens[0] is true"));
  EXPECT_THAT(error_of(R"({"7": {"generated_tokens": 3}})"), HasSubstr("expected a list of ids"));
  EXPECT_THAT(error_of(R"({"7": {"generated_tokens": [[1]]}})"), HasSubstr("generated_tokens[0] is a list"));
  EXPECT_THAT(error_of(R"({"7": {"logprobs": [-1, null]}})"), HasSubstr("logprobs[1] is null, expected a number"));
  EXPECT_THAT(error_of(R"({"7": {"logprobs": {"a": 1}}})"), HasSubstr("logprobs is an object"));
  EXPECT_THAT(error_of(R"({"7": {"generated_text": 5}})"), HasSubstr("expected a string"));
  EXPECT_THAT(error_of(R"({"7": {"latency": [1]}})"), HasSubstr("latency is a list, expected a number"));
  EXPECT_THAT(error_of(R"({"7": {"top_n_logprobs": [{"a": "b"}]}})"), HasSubstr("top_n_logprobs[0][\"a\"]"));
  EXPECT_THAT(error_of(R"({"7": {"top_n_logprobs": [3]}})"), HasSubstr("expected an object {token: logprob}"));
  EXPECT_THAT(error_of(R"({"throughput": [1, "x"]})"), HasSubstr("throughput[1] is the string \"x\""));
}

TEST(BrokenResults, IdsBeyondInt32AreRefused) {
  EXPECT_THAT(error_of(R"({"0": {"generated_tokens": [2147483648]}})"), HasSubstr("the number 2147483648"));
  EXPECT_THAT(error_of(R"({"0": {"generated_tokens": [-2147483649]}})"), HasSubstr("the number -2147483649"));
  EXPECT_THAT(error_of(R"({"0": {"generated_tokens": [99999999999999999999]}})"), HasSubstr("expected an id"));
  EXPECT_THAT(error_of(R"({"0": {"generated_tokens": [1, NaN]}})"), HasSubstr("generated_tokens[1] is the number NaN"));
}

TEST(BrokenResults, MarginsOfAnotherShapeThanTheRoutingAreRefused) {
  const auto error = [](const std::string& margins) {
    return error_of(R"({"0": {"routing_indices": [[[1], [2]], [[3], [4]]], "routing_margins": )" + margins + "}}");
  };
  EXPECT_THAT(error("[[1, 2]]"), HasSubstr("routing_margins has shape (1, 2), expected (2, 2)"));
  EXPECT_THAT(error("[[1], [2]]"), HasSubstr("routing_margins has shape (2, 1), expected (2, 2)"));
  EXPECT_THAT(error("[[1, 2], [3]]"), HasSubstr("routing_margins[1] has 1 margins, expected 2"));
  EXPECT_THAT(error("[1]"), HasSubstr("routing_margins[0] is the number 1, expected a list"));
  EXPECT_THAT(error("[[[1]]]"), HasSubstr("routing_margins[0][0] is a list, expected a margin"));
  EXPECT_THAT(error("7"), HasSubstr("expected a list: (tokens, layers)"));
}

TEST(BrokenResults, RaggedRoutingIsRefused) {
  EXPECT_THAT(error_of(R"({"0": {"routing_indices": [[[1, 2], [3]]]}})"), HasSubstr("has 1 experts, expected 2"));
  EXPECT_THAT(error_of(R"({"0": {"routing_indices": [[[1], [3]], [[1]]]}})"), HasSubstr("has 1 layers, expected 2"));
  EXPECT_THAT(error_of(R"({"0": {"routing_indices": [[[65536]]]}})"), HasSubstr("routing_indices[0][0][0]"));
  EXPECT_THAT(error_of(R"({"0": {"routing_indices": [[[-1]]]}})"), HasSubstr("from 0 to 65535"));
  EXPECT_THAT(error_of(R"({"0": {"routing_indices": [[1]]}})"), HasSubstr("expected a list"));
  EXPECT_THAT(error_of(R"({"0": {"routing_indices": [[[1]]], "routing_indices_token_indices": [1, 2]}})"),
              HasSubstr("names 2 tokens"));
}

TEST(BrokenResults, SyntaxErrorsCarryLineAndColumn) {
  EXPECT_THAT(error_of("{\"0\": {\n  \"latency\": x}}"), StartsWith("g.json:2:14: not valid JSON"));
  EXPECT_THAT(error_of("{\"0\": {\"logprobs\": [NaN,\n NaNx]}}"), StartsWith("g.json:2:"));
  EXPECT_THAT(error_of("{\"0\": {\"logprobs\": [1NaN]}}"), HasSubstr("not valid JSON"));
  EXPECT_THAT(error_of("{\"0\": {\"latency\": 1e999}}"), HasSubstr("number overflow"));
  EXPECT_THAT(error_of("{} {}"), StartsWith("g.json:1:4"));
  EXPECT_THAT(error_of("version https://example.org/spec"), HasSubstr("not valid JSON"));
  EXPECT_THAT(error_of("\"{\\\"0\\\": nope}\""), HasSubstr("(inside its string):1:"));
}

TEST(BrokenResults, InvalidUtf8IsRefusedWithItsPlace) {
  EXPECT_THAT(error_of("{\"0\": {\"generated_text\": \"a\xff\"}}"), AllOf(StartsWith("g.json:1:"), HasSubstr("UTF-8")));
  EXPECT_THAT(error_of("{\"0\": {\"generated_text\": \"\\ud800\"}}"), HasSubstr("surrogate"));
}

TEST(BrokenResults, DeepNestingIsRefusedNotFollowed) {
  std::string deep(200000, '[');
  EXPECT_THAT(error_of(R"({"0": {"events": )" + deep), HasSubstr("64 levels"));
  EXPECT_THAT(error_of(R"({"0": {"logprobs": )" + deep), HasSubstr("logprobs[0] is a list"));
}

// Every prefix of a document that shows all forms must be refused, none may crash or pass.
TEST(BrokenResults, EveryTruncationIsRefused) {
  const std::string document =
      R"({"0": {"input_prompt": "caf\u00e9 é", "generated_tokens": [1, -2], "tpot": [1e-3], "latency": NaN,
      "generated_top_n_logprobs": [{"a": -1.5}, null], "logprobs": [-Infinity, -0.5], "x": {"y": [true, null, "z"]},
      "routing_indices": [[[1, 2]]], "routing_indices_token_indices": [0]}, "throughput": [1, 2], "m": 3})";
  ASSERT_TRUE(read_results_text(document, "g.json").ok()) << read_results_text(document, "g.json").status().message();
  for (size_t length = 0; length < document.size(); ++length) error_of(std::string_view(document).substr(0, length));
}

// Any single byte may be damaged: the answer is a set or one line, never a crash.
TEST(BrokenResults, DamagedBytesNeverCrash) {
  const std::string document =
      R"({"0": {"generated_text": "aé", "logprobs": [-1.5, NaN], "routing_indices": [[[1, 2]]]}, "throughput": [1, 2]})";
  size_t refused = 0;
  for (size_t at = 0; at < document.size(); ++at) {
    for (const char byte : {'\0', '"', '{', ']', ',', '9', '\\', '\x80', 'N'}) {
      std::string damaged = document;
      damaged[at] = byte;
      const Result<ResultSet> set = read_results_text(damaged, "g.json");
      if (set.ok()) continue;
      ++refused;
      EXPECT_THAT(set.status().message(), Not(HasSubstr("\n")));
    }
  }
  EXPECT_GT(refused, document.size());
}

TEST(BrokenResults, MissingFilesAndFoldersAreTold) {
  EXPECT_EQ(read_results(testing::TempDir() + "no_such_file.json").status().code(), StatusCode::kNotFound);
  EXPECT_THAT(read_results(testing::TempDir()).status().message(), HasSubstr("is a folder"));
}

}  // namespace
}  // namespace assay
