#include "core/govern/accept.h"

#include <gmock/gmock.h>

#include "core/govern/review.h"
#include "core/govern/testing.h"

namespace assay::govern {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kOld =
    R"({"0": {"input_prompt": "Say", "generated_text": "a b", "generated_tokens": [1, 2], "logprobs": [-0.5, -0.25],
        "latency": 3.0, "step_count": 30}, "throughput": [1.0, 2.0],
        "assay": {"provenance": {"engine": "toy", "device": "old device"}, "notes": ["kept"]}})";
constexpr const char* kOtherTokens =
    R"({"0": {"input_prompt": "Say", "generated_text": "a c", "generated_tokens": [1, 3], "logprobs": [-0.5, -0.75]}})";
constexpr const char* kOtherNumbers =
    R"({"0": {"input_prompt": "Say", "generated_text": "a b", "generated_tokens": [1, 2], "logprobs": [-0.5, -0.26]}})";

class AcceptTest : public GovernTest {
 protected:
  Result<Accepted> accept_metrics(const TestCase& test, std::vector<std::string> metrics,
                                  const std::string& why = "the router was fixed") {
    const auto pending = read_pending(at(kPending), test.dir);
    if (!pending) return pending.status();
    return accept(test, *pending, {std::move(metrics), "Ada", why, "2026-11-30T00:00:00Z"}, compare::built_comparator);
  }
  // The refusal's message; the golden must be what it was.
  std::string refusal(const TestCase& test, std::vector<std::string> metrics, const std::string& why = "r") {
    const std::string before = text_of(kGolden);
    const auto accepted = accept_metrics(test, std::move(metrics), why);
    EXPECT_FALSE(accepted.ok());
    EXPECT_EQ(text_of(kGolden), before);
    EXPECT_TRUE(std::filesystem::exists(at(kPending)));
    return accepted.ok() ? "" : accepted.status().message();
  }
};

TEST_F(AcceptTest, OneMetricGoesInAndEverythingElseStays) {
  write(kGolden, kOld);
  const TestCase test = test_case("[logprobs, generated_tokens]");
  ASSERT_TRUE(record_text(test, kOtherNumbers).ok());
  const auto accepted = accept_metrics(test, {"logprobs"});
  ASSERT_TRUE(accepted.ok()) << accepted.status().message();
  EXPECT_FALSE(accepted->created);
  EXPECT_THAT(accepted->remaining, IsEmpty());
  EXPECT_FALSE(std::filesystem::exists(at(kPending)));
  const auto golden = read_results(at(kGolden));
  ASSERT_TRUE(golden.ok());
  EXPECT_THAT(*golden->requests[0].logprobs, ElementsAre(-0.5, -0.26));
  EXPECT_EQ(golden->requests[0].latency, 3.0);
  EXPECT_EQ(golden->requests[0].extra.size(), 1U);
  EXPECT_THAT(golden->quantities[0].values, ElementsAre(1.0, 2.0));
  const auto meta = parse_golden_meta(golden->extra);
  ASSERT_TRUE(meta.ok());
  EXPECT_EQ(meta->provenance->device, "new device");
  ASSERT_EQ(meta->accepted.size(), 1U);
  EXPECT_EQ(meta->accepted[0].metric, "logprobs");
  EXPECT_EQ(meta->accepted[0].who, "Ada");
  EXPECT_EQ(meta->accepted[0].why, "the router was fixed");
  EXPECT_EQ(meta->accepted[0].when, "2026-11-30T00:00:00Z");
  EXPECT_EQ(meta->accepted[0].run_id, "run-7");
  EXPECT_EQ(meta->further.size(), 1U) << "members of other makers stay";
}

TEST_F(AcceptTest, HalvesOfTwoRunsAreRefusedNamingBothMetrics) {
  write(kGolden, kOld);
  const TestCase test = test_case("[logprobs, generated_tokens, generated_text]");
  ASSERT_TRUE(record_text(test, kOtherTokens).ok());
  EXPECT_THAT(refusal(test, {"logprobs"}), HasSubstr("logprobs cannot be accepted without generated_text: request 0"));
  EXPECT_THAT(refusal(test, {"generated_text", "generated_tokens"}),
              HasSubstr("generated_text cannot be accepted without logprobs"));
  const auto accepted = accept_metrics(test, {"generated_text", "generated_tokens", "logprobs"});
  ASSERT_TRUE(accepted.ok()) << accepted.status().message();
  EXPECT_THAT(accepted->remaining, IsEmpty());
}

TEST_F(AcceptTest, ValuesThatThePendingGoldenLacksCannotKeepOldTokens) {
  write(kGolden, kOld);
  const TestCase test = test_case("[generated_tokens]");
  ASSERT_TRUE(record_text(test, R"({"0": {"input_prompt": "Say", "generated_text": "a c",
                                          "generated_tokens": [1, 3]}})")
                  .ok());
  EXPECT_THAT(refusal(test, {kAllMetrics}), HasSubstr("the pending golden has no logprobs"));
}

TEST_F(AcceptTest, WithoutReasonNameOrMetricNothingIsAccepted) {
  write(kGolden, kOld);
  const TestCase test = test_case("[logprobs]");
  ASSERT_TRUE(record_text(test, kOtherNumbers).ok());
  for (const char* nothing : {"", " \t", "\u3000", "\u200b"}) {
    EXPECT_THAT(refusal(test, {"logprobs"}, nothing), HasSubstr("only with a reason"));
  }
  EXPECT_THAT(refusal(test, {"logprobs"}, std::string(2001, 'x')), HasSubstr("2001 characters"));
  EXPECT_THAT(refusal(test, {}), HasSubstr("--metric"));
  EXPECT_THAT(refusal(test, {"logprob"}), HasSubstr("holds no \"logprob\"; it holds generated_text, generated_tokens"));
  EXPECT_THAT(refusal(test, {"noise"}), HasSubstr("no noise model"));
}

TEST_F(AcceptTest, AGoldenThatChangedSinceTheRecordingIsNotTouched) {
  write(kGolden, kOld);
  const TestCase test = test_case("[logprobs]");
  ASSERT_TRUE(record_text(test, kOtherNumbers).ok());
  write(kGolden, kOtherTokens);
  EXPECT_THAT(refusal(test, {"logprobs"}), HasSubstr("the golden changed after this was recorded"));
  std::filesystem::remove(at(kGolden));
  EXPECT_THAT(refusal(test, {"logprobs"}), HasSubstr("the golden vanished after this was recorded"));
}

TEST_F(AcceptTest, APendingFileRecordedAnewMeanwhileIsLookedAtAgain) {
  write(kGolden, kOld);
  const TestCase test = test_case("[logprobs]");
  ASSERT_TRUE(record_text(test, kOtherNumbers).ok());
  const auto seen = read_pending(at(kPending), test.dir);
  ASSERT_TRUE(record_text(test, kOtherTokens).ok());
  const auto accepted = accept(test, *seen, {{"logprobs"}, "Ada", "r", ""}, compare::built_comparator);
  EXPECT_THAT(accepted.status().message(), HasSubstr("recorded anew"));
}

TEST_F(AcceptTest, OtherRequestsOrPromptsAreAcceptedAsAWholeOnly) {
  write(kGolden, kOld);
  const TestCase test = test_case("[generated_text, generated_tokens, logprobs]");
  ASSERT_TRUE(record_text(test, R"({"0": {"input_prompt": "Tell", "generated_text": "x", "generated_tokens": [9],
                                          "logprobs": [-0.5]}, "1": {"generated_text": "y"}})")
                  .ok());
  EXPECT_THAT(refusal(test, {"logprobs"}), HasSubstr("request 0 of the pending golden has another prompt"));
  const auto accepted = accept_metrics(test, {kAllMetrics});
  ASSERT_TRUE(accepted.ok()) << accepted.status().message();
  const auto golden = read_results(at(kGolden));
  EXPECT_EQ(golden->requests.size(), 2U);
  EXPECT_EQ(golden->requests[0].prompt, "Tell");
  EXPECT_EQ(golden->requests[0].extra.size(), 1U) << "what the run does not know stays";
  EXPECT_EQ(parse_golden_meta(golden->extra)->accepted[0].metric, "*");
}

TEST_F(AcceptTest, AFirstGoldenHoldsPromptsAndWhatWasAccepted) {
  const TestCase test = test_case("[generated_text, generated_tokens]");
  const auto recorded = record_text(test, kOld);
  ASSERT_TRUE(recorded.ok()) << recorded.status().message();
  const auto one = accept_metrics(test, {"generated_tokens"});
  ASSERT_TRUE(one.ok()) << one.status().message();
  EXPECT_TRUE(one->created);
  EXPECT_THAT(one->remaining, ElementsAre("generated_text"));
  EXPECT_TRUE(std::filesystem::exists(at(kPending)));
  const auto two = accept_metrics(test, {"generated_text"});
  ASSERT_TRUE(two.ok()) << two.status().message();
  EXPECT_THAT(two->remaining, IsEmpty());
  const auto golden = read_results(at(kGolden));
  EXPECT_EQ(golden->requests[0].prompt, "Say");
  EXPECT_FALSE(golden->requests[0].logprobs.has_value());
  EXPECT_EQ(parse_golden_meta(golden->extra)->accepted.size(), 2U);
}

TEST_F(AcceptTest, AGoldenForOnePlatformBeginsAsCopyOfTheOneForAny) {
  write("golden_values_dev_any.json", kOld);
  const TestCase test = test_case("[logprobs, generated_tokens]");
  ASSERT_TRUE(record_text(test, kOtherNumbers).ok());
  const auto accepted = accept_metrics(test, {"logprobs"});
  ASSERT_TRUE(accepted.ok()) << accepted.status().message();
  EXPECT_TRUE(accepted->created);
  EXPECT_EQ(text_of("golden_values_dev_any.json"), kOld);
  const auto golden = read_results(at(kGolden));
  EXPECT_THAT(*golden->requests[0].tokens, ElementsAre(1, 2));
  EXPECT_THAT(*golden->requests[0].logprobs, ElementsAre(-0.5, -0.26));
}

TEST_F(AcceptTest, TheCoordinatorsSpellingOfNewlinesIsKept) {
  write(kGolden,
        R"({"0": {"input_prompt": "Say", "generated_text": "a\\nb", "generated_tokens": [1, 2], "latency": 1.0}})");
  const TestCase test = test_case("[generated_text, generated_tokens]");
  ASSERT_TRUE(
      record_text(test, R"({"0": {"input_prompt": "Say", "generated_text": "a\nc", "generated_tokens": [1, 3]}})")
          .ok());
  const auto accepted = accept_metrics(test, {"generated_text", "generated_tokens"});
  ASSERT_TRUE(accepted.ok()) << accepted.status().message();
  EXPECT_EQ(read_results(at(kGolden))->requests[0].text, "a\\nc");
}

constexpr const char* kSource =
    "Once upon a time there was a text that all of us know by heart, word for word.\n\nThe second part is free.\n";
constexpr const char* kKnownCase = "ASSAY:\n  golden: known_completion\n  known_completion: ";

class KnownAcceptTest : public AcceptTest {
 protected:
  TestCase known_case() {
    write("source.txt", kSource);
    return test_case("[generated_text, generated_tokens]", kKnownCase + at("source.txt") + "\n");
  }
  static std::string with_text(const std::string& text) {
    return R"({"0": {"input_prompt": "Once upon a time", "generated_text": ")" + text +
           R"(", "generated_tokens": [1, 2]}})";
  }
};

TEST_F(KnownAcceptTest, TheSourceTextCanBeAcceptedAndNothingElse) {
  const TestCase test = known_case();
  const std::string right = " there was a text that all of us know by heart, word for word.\\n\\nThe end.";
  std::string wrong = right;
  wrong.replace(wrong.find("all"), 3, "few");
  write(kGolden, with_text(wrong));  // even where the golden is wrong already
  ASSERT_TRUE(record_text(test, with_text(" there was a text that some of us know by heart, word for word.")).ok());
  for (const std::vector<std::string>& metrics :
       {std::vector<std::string>{"generated_text", "generated_tokens"}, {kAllMetrics}}) {
    const std::string message = refusal(test, metrics, "it always was like this");
    EXPECT_THAT(message, HasSubstr("a known completion cannot be accepted unless its text is the source's"));
    EXPECT_THAT(message, HasSubstr("source.txt says"));
    EXPECT_THAT(message, HasSubstr("at code point 23"));
    EXPECT_THAT(message, HasSubstr("|some of us"));
    EXPECT_THAT(message, HasSubstr("|all of us"));
  }
  ASSERT_TRUE(record_text(test, with_text(right)).ok());
  const auto accepted = accept_metrics(test, {"generated_text"});
  EXPECT_TRUE(accepted.ok()) << accepted.status().message();
}

TEST_F(KnownAcceptTest, AKnownCompletionMayNotBecomeShorter) {
  const TestCase test = known_case();
  write(kGolden, with_text(" there was a text that all of us know by heart, word for word."));
  ASSERT_TRUE(record_text(test, with_text(" there was a text that all of us know by heart")).ok());
  EXPECT_THAT(refusal(test, {kAllMetrics}), HasSubstr("may not become shorter: 46 code points"));
  ASSERT_TRUE(record_text(test, with_text(" there was")).ok());
  EXPECT_THAT(refusal(test, {kAllMetrics}), HasSubstr("needs at least 40"));
}

TEST_F(KnownAcceptTest, TextThatRunsOnWhereTheSourceHasItsBlankLineIsRefused) {
  const TestCase test = known_case();
  ASSERT_TRUE(
      record_text(test, with_text(" there was a text that all of us know by heart, word for word. More.")).ok());
  EXPECT_THAT(refusal(test, {kAllMetrics}), HasSubstr("unless its text is the source's"));
}

TEST_F(KnownAcceptTest, WithoutASourceTheGoldensOwnTextIsTheKnownOne) {
  const TestCase test = test_case("[generated_text]", "ASSAY:\n  golden: known_completion\n");
  write(kGolden, with_text(" there was a text that all of us know by heart, word for word."));
  ASSERT_TRUE(record_text(test, with_text(" there was a text that few of us know by heart, word for word.")).ok());
  EXPECT_THAT(refusal(test, {kAllMetrics}), HasSubstr("the golden is the known text"));
}

TEST_F(KnownAcceptTest, ARequestOfAKnownCompletionMayNotBeDropped) {
  const TestCase test = known_case();
  const std::string one = with_text(" there was a text that all of us know by heart, word for word.");
  std::string two = one;
  two.insert(two.rfind('}'), ", \"1\"" + one.substr(one.find(':'), one.rfind('}') - one.find(':')));
  write(kGolden, two);
  ASSERT_TRUE(record_text(test, one).ok());
  EXPECT_THAT(refusal(test, {kAllMetrics}), HasSubstr("request 1: a known completion may not be dropped"));
}

TEST_F(AcceptTest, WhatCouldNeverPassAsAGoldenIsRefusedWhoeverWroteIt) {
  write(kGolden, kOld);
  const TestCase test = test_case("[generated_text, generated_tokens]");
  ASSERT_TRUE(record_text(test, kOtherTokens).ok());
  const std::string pending = text_of(kPending);
  const auto change = [&](const std::string& from, const std::string& to) {
    std::string text = pending;
    write(kPending, text.replace(text.find(from), from.size(), to));
  };
  change("\"a c\"", "\"\"");
  EXPECT_THAT(refusal(test, {kAllMetrics}), HasSubstr("could never pass: generated_text: request 0"));
  write(kPending, "{" + pending.substr(pending.find("\"assay\"")));
  EXPECT_THAT(refusal(test, {kAllMetrics}), HasSubstr("holds no request"));
}

TEST_F(AcceptTest, RejectingRemovesThePendingFileAlone) {
  write(kGolden, kOld);
  const TestCase test = test_case("[logprobs]");
  ASSERT_TRUE(record_text(test, kOtherNumbers).ok());
  EXPECT_TRUE(reject(at(kPending)).ok());
  EXPECT_FALSE(std::filesystem::exists(at(kPending)));
  EXPECT_EQ(text_of(kGolden), kOld);
  EXPECT_EQ(reject(at(kPending)).code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace assay::govern
