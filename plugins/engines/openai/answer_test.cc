#include "plugins/engines/openai/answer.h"

#include <gmock/gmock.h>

#include "plugins/engines/openai/stream.h"

namespace assay::engines::openai {
namespace {

using testing::HasSubstr;

// An answer of three tokens "a", "b", "c" in the chat format of logprobs, `choice` and `body` with more members.
std::string answer(const std::string& text, const std::string& choice = "", const std::string& body = "") {
  return R"({"choices": [{"index": 0, "text": ")" + text + R"(", "finish_reason": "length")" + choice + "}]" + body +
         "}";
}
const std::string kThree =
    R"(, "logprobs": {"tokens": ["a", "b", "c"], "token_logprobs": [-1, -2, -3], "top_logprobs": [{"a": -1}, {"x": -1, "b": -2}, {"c": -3}]})";

Asked asked(int32_t tokens = 3) {
  Asked made;
  made.prompt = "P";
  made.max_tokens = tokens;
  return made;
}

std::string parse_failure(const std::string& body, bool chat = false) {
  const Result<Answer> parsed = parse_answer(body, chat);
  return parsed.ok() ? "" : parsed.status().message();
}

Result<Checked> checked(const std::string& body, const Asked& what) {
  Result<Answer> parsed = parse_answer(body, false);
  EXPECT_TRUE(parsed.ok()) << parsed.status().message();
  return check_answer(*std::move(parsed), what);
}

std::string check_failure(const std::string& body, const Asked& what) {
  const Result<Checked> result = checked(body, what);
  return result.ok() ? "" : result.status().message();
}

TEST(ParseAnswer, ReadsArraysEntriesAndIds) {
  const Result<Answer> arrays = parse_answer(answer("abc", kThree + R"(, "token_ids": [7, 8, 9])"), false);
  ASSERT_TRUE(arrays.ok()) << arrays.status().message();
  EXPECT_EQ(arrays->tokens[1].text, "b");
  EXPECT_EQ(arrays->tokens[1].id, 8);
  EXPECT_EQ(arrays->tokens[1].top[0].text, "x") << "sorted";
  const Result<Answer> entries = parse_answer(
      answer("\xc3\xa9", R"(, "logprobs": {"content": [{"token": "\ufffd", "bytes": [195], "logprob": -1, "id": 5,
                           "top_logprobs": []}, {"token": "\ufffd", "bytes": [169], "logprob": -1, "id": 6}]})"),
      false);
  ASSERT_TRUE(entries.ok()) << entries.status().message();
  EXPECT_EQ(entries->tokens[0].text, "\xc3");
  EXPECT_EQ(entries->tokens[1].id, 6);
  const Result<Answer> spelled =
      parse_answer(answer("abc", R"(, "logprobs": {"tokens": ["token_id:17"], "token_logprobs": [-1]})"), false);
  EXPECT_EQ(spelled->tokens[0].id, 17);
  const Result<Answer> meta =
      parse_answer(answer("ab", R"(, "meta_info": {"output_token_logprobs": [[-1, 3, "a"], [-2, 4, "b"]]})"), false);
  EXPECT_EQ(meta->tokens[1].id, 4);
  EXPECT_EQ(meta->tokens[1].logprob, -2);
}

TEST(ParseAnswer, ReadsTheListOfThePrompt) {
  const Result<Answer> parsed = parse_answer(
      answer("a", R"(, "prompt_logprobs": [null, {"5": {"logprob": -2, "decoded_token": "x"}, "9": {"logprob": -1}}],
                     "prompt_token_ids": [1, 5])"),
      false);
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  ASSERT_EQ(parsed->prompt_tokens.size(), 2U);
  EXPECT_EQ(parsed->prompt_tokens[1].id, 5);
  EXPECT_EQ(parsed->prompt_tokens[1].logprob, -2);
  EXPECT_EQ(parsed->prompt_tokens[1].top[0].id, 9);
}

TEST(ParseAnswer, RefusesWhatIsNoAnswer) {
  EXPECT_THAT(parse_failure("{\"choices\": [{\"text\": \"\xff\"}]}"), HasSubstr("no UTF-8 at byte 23"));
  EXPECT_THAT(parse_failure("{\"choices\": ["), HasSubstr("no JSON"));
  EXPECT_THAT(parse_failure(R"({"error": {"message": "dead"}})"), HasSubstr("dead"));
  EXPECT_THAT(parse_failure("[]"), HasSubstr("expected an object"));
  EXPECT_THAT(parse_failure(R"({"choices": []})"), HasSubstr("no choices"));
  EXPECT_THAT(parse_failure(R"({"choices": [{"text": "a"}, {"text": "b"}]})"), HasSubstr("2 choices"));
  EXPECT_THAT(parse_failure(R"({"choices": [{"index": 3, "text": "a"}]})"), HasSubstr("index"));
  EXPECT_THAT(parse_failure(R"({"choices": [{"index": 0}]})"), HasSubstr("no text"));
  EXPECT_THAT(parse_failure(R"({"choices": [{"text": 7}]})"), HasSubstr("expected a string"));
  EXPECT_THAT(parse_failure(R"({"choices": [{"index": 0}]})", true), HasSubstr("no message"));
  EXPECT_THAT(parse_failure(answer("a", R"(, "logprobs": {"tokens": ["a"], "token_logprobs": []})")),
              HasSubstr("0 token_logprobs for 1 tokens"));
  EXPECT_THAT(parse_failure(answer("a", R"(, "logprobs": {"tokens": ["a", "b"], "token_logprobs": [-1, null]})")),
              HasSubstr("logprob of token 1"));
  EXPECT_THAT(parse_failure(answer("a", R"(, "logprobs": {"content": [{"token": "a", "logprob": NaN}]})")),
              HasSubstr("no JSON"));
  EXPECT_THAT(
      parse_failure(answer("a", R"(, "logprobs": {"content": [{"token": "a", "bytes": [300], "logprob": 0}]})")),
      HasSubstr("from 0 to 255"));
  EXPECT_THAT(
      parse_failure(answer("a", R"(, "logprobs": {"tokens": ["a"], "token_logprobs": [-1]}, "token_ids": [1, 2])")),
      HasSubstr("2 ids for 1 listed"));
  EXPECT_THAT(parse_failure(answer("a", "", R"(, "usage": {"completion_tokens": "many"})")),
              HasSubstr("expected a count"));
  EXPECT_THAT(parse_failure(answer("a", R"(, "token_ids": [-4])")), HasSubstr("expected a token id"));
}

TEST(CheckAnswer, TakesAnHonestAnswer) {
  Asked what = asked();
  what.logprobs = true;
  what.top_n = 1;
  const Result<Checked> result =
      checked(answer("abc", kThree, R"(, "usage": {"prompt_tokens": 1, "completion_tokens": 3})"), what);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->text, "abc");
  EXPECT_EQ(result->tokens.size(), 3U);
  EXPECT_EQ(result->tokens[1].top.size(), 1U) << "cut to what was asked for";
}

TEST(CheckAnswer, FindsOutLies) {
  Asked what = asked();
  what.logprobs = true;
  EXPECT_THAT(check_failure(answer("abc"), what), HasSubstr("none came"));
  EXPECT_THAT(check_failure(answer("abX", kThree), what), HasSubstr("do not read like the text, from byte 2"));
  EXPECT_THAT(check_failure(answer("ab", kThree), what), HasSubstr("do not read like the text"));
  EXPECT_THAT(check_failure(answer("abc", kThree, R"(, "usage": {"completion_tokens": 9})"), what),
              HasSubstr("usage says 9 generated tokens, 3 are listed"));
  what.max_tokens = 2;
  EXPECT_THAT(check_failure(answer("abc", kThree), what), HasSubstr("asked for were at most 2"));
  what.max_tokens = 8;
  EXPECT_THAT(check_failure(answer("abc", kThree), what), HasSubstr("truncated: 3 of 8 tokens"));
  EXPECT_THAT(check_failure(R"({"choices": [{"text": "a"}]})", what), HasSubstr("no finish_reason"));
  EXPECT_THAT(check_failure(R"({"choices": [{"text": "a", "finish_reason": "content_filter"}]})", what),
              HasSubstr("content_filter"));
  EXPECT_THAT(check_failure(answer("a", R"(, "logprobs": {"tokens": ["a"], "token_logprobs": [0.5]})"), asked(1)),
              HasSubstr("expected at most 0"));
}

TEST(CheckAnswer, FindsOutAnEchoThatIsNone) {
  Asked what = asked();
  what.logprobs = what.echo = true;
  EXPECT_THAT(check_failure(answer("abc", kThree), what), HasSubstr("ignores echo"));
  EXPECT_THAT(check_failure(answer("Pabc", kThree, R"(, "usage": {"prompt_tokens": 1, "completion_tokens": 3})"), what),
              HasSubstr("without its logprobs"));
  const std::string four =
      R"(, "logprobs": {"tokens": ["<s>", "P", "a", "b", "c"], "token_logprobs": [null, -4, -1, -2, -3]})";
  const Result<Checked> result =
      checked(answer("Pabc", four, R"(, "usage": {"prompt_tokens": 2, "completion_tokens": 3})"), what);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->text, "abc");
  EXPECT_EQ(result->prompt_tokens.size(), 2U);
  EXPECT_EQ(result->tokens.size(), 3U);
}

TEST(CheckAnswer, LeavesOutTheTokenThatEndedTheText) {
  const std::string end =
      R"({"choices": [{"text": "ab", "finish_reason": "stop", "logprobs": {"tokens": ["a", "b", "</s>"], "token_logprobs": [-1, -2, -3]}}]})";
  Asked what = asked(8);
  const Result<Checked> without = checked(end, what);
  ASSERT_TRUE(without.ok()) << without.status().message();
  EXPECT_EQ(without->tokens.size(), 2U);
  EXPECT_TRUE(without->dropped_end);
  what.keep_end_token = true;
  EXPECT_EQ(checked(end, what)->tokens.size(), 3U);
}

TEST(CheckAnswer, TokensThatAreSpelledByTheirIdsAreNotHeldAgainstTheText) {
  const std::string arrays = R"("logprobs": {"tokens": ["token_id:17", "token_id:4"], "token_logprobs": [-1, -2]})";
  const std::string entries =
      R"("logprobs": {"content": [{"token": "token_id:17", "bytes": [97], "logprob": -1}, {"token": "token_id:4", "logprob": -2}]})";
  for (const std::string& list : {arrays, entries}) {
    const auto body = [&list](const std::string& reason, const std::string& more = "") {
      return R"({"choices": [{"text": "a", "finish_reason": ")" + reason + "\", " + list + "}]" + more + "}";
    };
    const auto count = [&](const std::string& text, const Asked& what) {
      const Result<Checked> result = checked(text, what);
      return result.ok() ? static_cast<int>(result->tokens.size()) : -1;
    };
    Asked what = asked(2);
    what.logprobs = true;
    EXPECT_EQ(count(body("length"), what), 2);
    EXPECT_EQ(count(body("stop"), what), 1) << "the last one ended the text";
    EXPECT_EQ(count(body("stop", R"(, "usage": {"completion_tokens": 2})"), what), 1);
    EXPECT_TRUE(checked(body("stop"), what)->dropped_end);
    what.max_tokens = 3;
    EXPECT_EQ(count(body("stop", R"(, "usage": {"completion_tokens": 3})"), what), 2) << "it is not listed";
    what.stop_words = {"b"};
    EXPECT_EQ(count(body("stop"), what), 2) << "a stop word may have ended it";
    what.stop_words.clear();
    what.keep_end_token = true;
    EXPECT_EQ(count(body("stop"), what), 2);
  }
  Asked echo = asked(1);
  echo.logprobs = echo.echo = true;
  const std::string echoed =
      R"({"choices": [{"text": "Pa", "finish_reason": "length", "logprobs": {"tokens": ["token_id:1", "token_id:2"], "token_logprobs": [null, -2]}}])";
  EXPECT_THAT(check_failure(echoed + "}", echo), HasSubstr("nothing tells which are the prompt's"));
  const Result<Checked> parted = checked(echoed + R"(, "usage": {"prompt_tokens": 1, "completion_tokens": 1}})", echo);
  ASSERT_TRUE(parted.ok()) << parted.status().message();
  EXPECT_EQ(parted->prompt_tokens.at(0).id, 1);
  EXPECT_EQ(parted->tokens.at(0).id, 2);
}

TEST(CheckAnswer, AStopWordMayCutATokenThatIsNotListed) {
  const std::string cut =
      R"({"choices": [{"text": "ab ", "finish_reason": "stop", "logprobs": {"tokens": ["a", "b"], "token_logprobs": [-1, -2]}}]})";
  Asked what = asked(8);
  EXPECT_THAT(check_failure(cut, what), HasSubstr("do not read like the text")) << "no stop word was given";
  what.stop_words = {"cd"};
  const Result<Checked> result = checked(cut, what);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->text, "ab ");
}

TEST(Stream, IsPutTogetherToOneAnswer) {
  StreamReader stream(false, 2, as_it_is);
  size_t fresh = 0;
  const std::string events =
      ": ping\r\n\r\ndata: {\"choices\": [{\"index\": 0, \"text\": \"a\", \"logprobs\": {\"tokens\": [\"a\"], "
      "\"token_logprobs\": [-1]}, \"finish_reason\": null}]}\r\n\r\ndata: {\"choices\": [{\"text\": \"b\", "
      "\"logprobs\": "
      "{\"tokens\": [\"b\"], \"token_logprobs\": [-2]}, \"finish_reason\": \"length\"}]}\n\n"
      "data: {\"choices\": [], \"usage\": {\"completion_tokens\": 2}}\n\ndata: [DONE]\n\n";
  for (const char c : events) {
    const Result<size_t> taken = stream.take({&c, 1});
    ASSERT_TRUE(taken.ok()) << taken.status().message();
    fresh += *taken;
  }
  EXPECT_EQ(fresh, 2U);
  const Result<std::string> body = stream.body();
  ASSERT_TRUE(body.ok()) << body.status().message();
  const Result<Checked> result = checked(*body, asked(2));
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->text, "ab");
  EXPECT_EQ(result->tokens[1].logprob, -2);
}

TEST(Stream, RefusesWhatIsNoStream) {
  const auto failure = [](const std::string& bytes) {
    StreamReader stream(false, 1, as_it_is);
    const Result<size_t> taken = stream.take(bytes);
    if (!taken) return taken.status().message();
    const Result<std::string> body = stream.body();
    return body.ok() ? "" : body.status().message();
  };
  EXPECT_THAT(failure("{\"choices\": []}\n"), HasSubstr("no line of server-sent events"));
  EXPECT_THAT(failure("data: {\n\n"), HasSubstr("no JSON object"));
  EXPECT_THAT(failure("data: {\"choices\": []}\n\n"), HasSubstr("without [DONE]"));
  EXPECT_THAT(failure("data: {\"error\": \"lost\"}\n\n"), HasSubstr("lost"));
  EXPECT_THAT(failure("data: {\"choices\": [{\"text\": \"a\"}, {\"text\": \"b\"}]}\n\n"), HasSubstr("2 choices"));
  const std::string one = "data: {\"choices\": [{\"text\": \"a\"}]}\n\n";
  EXPECT_THAT(failure(one + one), HasSubstr("asked for were at most 1"));
  EXPECT_THAT(failure("data: [DONE]\n\n" + one), HasSubstr("behind [DONE]"));
  EXPECT_THAT(failure(std::string(9 << 20, 'x')), HasSubstr("more than"));
}

// Wherever a message is cut: part of a key would not be found in it any more.
TEST(OpenaiAnswer, WhatIsShownOfAnAnswerIsCleanedBeforeItIsCut) {
  const std::string key = "sk-" + std::string(50, 'k');
  const Cleaner clean = [&key](std::string text) {
    for (size_t at = text.find(key); at != std::string::npos; at = text.find(key)) text.replace(at, key.size(), "***");
    return text;
  };
  for (size_t before = 0; before < 320; before += 5) {
    const std::string said = std::string(before, 'x') + key + " and more";
    for (const std::string& body :
         {said, R"({"error": {"message": ")" + said + "\"}}", R"({"error": [")" + said + "\"]}"}) {
      EXPECT_THAT(http_failure("GET x", 401, body, clean).message(), testing::Not(HasSubstr("sk-"))) << body;
    }
    const std::string first =
        "data: {\"model\": \"a\", \"id\": \"1\", \"choices\": [{\"text\": \"a\", \"finish_reason\": \"stop\"}]}\n\n";
    const std::string same = "data: {\"id\": \"1\", \"choices\": [{\"text\": \"a\"}]}\n\n";
    for (const std::string& event :
         {said + "\n", "data: " + said + "\n\n", R"(data: {"error": ")" + said + "\"}\n\n",
          first + R"(data: {"model": ")" + said + "\"}\n\n",
          first + R"(data: {"choices": [{"text": [")" + said + "\"]}]}\n\n",
          first + R"(data: {"choices": [{"finish_reason": ")" + said + "\"}]}\n\n",
          first + R"(data: {"choices": [{"index": ")" + said + "\"}]}\n\n",
          first + R"(data: {"choices": [{"text": ")" + said + "\"}]}\n\n",
          same + same + R"(data: {"id": ")" + said + R"(", "choices": [{"text": ""}]})" + "\n\n"}) {
      StreamReader stream(false, 9, clean);
      const Result<size_t> taken = stream.take(event);
      ASSERT_FALSE(taken.ok()) << event;
      EXPECT_THAT(taken.status().message(), testing::Not(HasSubstr("sk-"))) << event;
    }
  }
}

TEST(OpenaiAnswer, WhatIsNestedTooDeepIsNeitherShownNorCopied) {
  const std::string deep = std::string(1'000'000, '[') + std::string(1'000'000, ']');
  EXPECT_EQ(error_of(R"({"error": )" + deep + "}"), "");
  EXPECT_THAT(http_failure("GET x", 500, R"({"error": )" + deep + "}", as_it_is).message(), HasSubstr("HTTP 500: "));
  for (const std::string& body : {deep, R"({"choices": )" + deep + "}", R"({"error": )" + deep + "}",
                                  answer("abc", R"(, "logprobs": )" + deep), answer("abc", "", R"(, "x": )" + deep)}) {
    EXPECT_EQ(parse_failure(body), "the answer is nested more than 256 deep");
    StreamReader stream(false, 9, as_it_is);
    const Result<size_t> taken = stream.take("data: " + body + "\n\n");
    ASSERT_FALSE(taken.ok());
    EXPECT_EQ(taken.status().message(), "event 1 of the stream: it is nested more than 256 deep");
  }
}

TEST(OpenaiAnswer, ANameTwiceInOneObjectIsNoAnswer) {
  const auto reason = [](const char* body) {
    const Result<Answer> answer = parse_answer(body, false);
    return answer.ok() ? "" : answer.status().message();
  };
  EXPECT_EQ(reason(R"({"choices": [{"text": "a", "finish_reason": "stop"}]})"), "");
  EXPECT_THAT(reason(R"({"choices": [{"text": "a", "text": "b", "finish_reason": "stop"}]})"),
              testing::HasSubstr("\"text\" more than once"));
  StreamReader stream(false, -1, as_it_is);
  const Result<size_t> taken = stream.take("data: {\"choices\": [{\"text\": \"a\", \"text\": \"b\"}]}\n\n");
  ASSERT_FALSE(taken.ok());
  EXPECT_THAT(taken.status().message(), testing::HasSubstr("\"text\" is there more than once"));
}

}  // namespace
}  // namespace assay::engines::openai
