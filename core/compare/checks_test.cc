#include "core/compare/checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/compare/test_plugins.h"

namespace assay::compare {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::SizeIs;

std::vector<Finding> check(std::string_view golden, std::string_view actual) {
  return check_sets(results(golden), results(actual));
}

TEST(Checks, MissingAndExtraRequestsAreEachNamed) {
  const std::vector<Finding> found = check(R"({"0": {}, "2": {}, "10": {}})", R"({"0": {}, "3": {}})");
  ASSERT_THAT(found, SizeIs(3));
  EXPECT_EQ(found[0].request, "2");
  EXPECT_THAT(found[0].message, HasSubstr("missing from the result"));
  EXPECT_EQ(found[1].request, "10");
  EXPECT_EQ(found[2].request, "3");
  EXPECT_THAT(found[2].message, HasSubstr("not in the golden"));
  for (const Finding& finding : found) EXPECT_EQ(finding.verdict, Verdict::kInvalid);
}

TEST(Checks, NothingInAFileIsInvalid) {
  EXPECT_THAT(check("{}", "{}"), SizeIs(2));
  EXPECT_THAT(check("{}", R"({"0": {}})")[0].message, HasSubstr("holds no request"));
  EXPECT_THAT(check(R"({"throughput": [1]})", R"({"throughput": [1]})"), SizeIs(0));
}

TEST(Checks, PromptsThatDifferStandSideBySide) {
  const std::vector<Finding> found =
      check(R"({"0": {"input_prompt": "the licence says"}})", R"({"0": {"input_prompt": "the lizard says"}})");
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].index, 6);
  EXPECT_THAT(found[0].message, AllOf(HasSubstr("\"the li|cence says\""), HasSubstr("\"the li|zard says\"")));
  EXPECT_THAT(check(R"({"0": {"input_prompt": "a"}})", R"({"0": {"generated_text": "b"}})"), SizeIs(0));
}

TEST(Checks, PromptIdsThatDifferAreNamed) {
  const std::vector<Finding> found =
      check(R"({"0": {"prompt_tokens": [1, 2, 3]}})", R"({"0": {"prompt_tokens": [1, 2]}})");
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].index, 2);
  EXPECT_THAT(found[0].message, AllOf(HasSubstr("golden [1 2 |3] (3 ids)"), HasSubstr("result [1 2 |] (2 ids)")));
}

TEST(Checks, ADoubledFirstTokenIsShownSideBySide) {
  const std::vector<Finding> found = check(R"({"0": {"prompt_tokens": [1, 20, 21, 22, 23, 24, 25, 26]}})",
                                           R"({"0": {"prompt_tokens": [1, 1, 20, 21, 22, 23, 24, 25, 26]}})");
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].index, 1);
  EXPECT_THAT(found[0].message, AllOf(HasSubstr("golden [1 |20 21 22 23 24 25 ..] (8 ids)"),
                                      HasSubstr("result [1 |1 20 21 22 23 24 ..] (9 ids)")));
}

TEST(Checks, LengthsOfLogprobsProveOtherPromptTokens) {
  constexpr std::string_view kThree = R"({"0": {"generated_tokens": [5], "logprobs": [-1, -1, -1]}})";
  const std::vector<Finding> found =
      check(kThree, R"({"0": {"prompt_tokens": [1, 1, 2, 3], "generated_tokens": [5], "logprobs": [-1, -1, -1, -1]}})");
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_THAT(found[0].message,
              AllOf(HasSubstr("golden 3 (told by its logprobs)"), HasSubstr("result 4 (told by its prompt ids)")));
  EXPECT_THAT(check(kThree, R"({"0": {"prompt_tokens": [1, 2, 3], "generated_tokens": [5]}})"), SizeIs(0));
  // Logprobs of generated tokens alone tell nothing about the prompt.
  EXPECT_THAT(check(kThree, R"({"0": {"generated_tokens": [5], "logprobs": [-1]}})"), SizeIs(0));
}

TEST(Checks, NanAndInfinitiesAreNamedWithRequestAndIndex) {
  const std::vector<Finding> golden =
      check(R"({"7": {"logprobs": [-1, NaN, -2, Infinity]}})", R"({"7": {"logprobs": [-1, -1, -2, -3]}})");
  ASSERT_THAT(golden, SizeIs(1));
  EXPECT_EQ(golden[0].request, "7");
  EXPECT_EQ(golden[0].index, 1);
  EXPECT_THAT(golden[0].message, HasSubstr("golden has NaN at logprobs[1] (2 such values in all)"));
  const std::vector<Finding> both =
      check(R"({"7": {"logprobs": [Infinity]}})", R"({"7": {"logprobs": [Infinity], "latency": NaN}})");
  ASSERT_THAT(both, SizeIs(3));
  EXPECT_THAT(both[1].message, HasSubstr("result has Infinity at logprobs[0]"));
  EXPECT_THAT(both[2].message, HasSubstr("NaN as latency"));
  EXPECT_THAT(check(R"({"0": {"top_n_logprobs": [{"a": -1}, {"b": -Infinity}]}})", R"({"0": {}})")[0].message,
              HasSubstr("top_n_logprobs[1][\"b\"]"));
  EXPECT_THAT(check(R"({"throughput": [1, NaN]})", R"({"throughput": [1]})")[0].message, HasSubstr("throughput[1]"));
}

TEST(Checks, CoordinatorFilesHoldNewlinesAsTwoCharacters) {
  constexpr std::string_view kEscaped = R"({"0": {"input_prompt": "a\\nb", "generated_text": "c\\n\\nd",
    "generated_tokens": [1], "latency": 1.0}})";
  constexpr std::string_view kPlain = R"({"0": {"input_prompt": "a\nb", "generated_text": "c\n\nd",
    "generated_tokens": [1], "tpot": [1.0], "latency": 1.0}})";
  EXPECT_TRUE(escapes_newlines(results(kEscaped)));
  EXPECT_FALSE(escapes_newlines(results(kPlain)));
  EXPECT_THAT(check(kEscaped, kPlain), SizeIs(0));
  EXPECT_EQ(judge_json(with_metrics({"generated_text"}), kEscaped, kPlain).verdict, Verdict::kIdentical);
  EXPECT_EQ(judge_json(with_metrics({"generated_text"}), kPlain, kEscaped).verdict, Verdict::kIdentical);
}

TEST(NonfiniteValues, EachListIsNamedOnceWithItsFirstIndex) {
  const ResultSet set = *read_results_text(
      R"({"0": {"generated_tokens": [1], "logprobs": [-1.0, NaN, Infinity]}, "throughput": [NaN]})", "x");
  const std::vector<Finding> found = nonfinite_values("golden", set);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].request, "0");
  EXPECT_EQ(found[0].index, 1);
  EXPECT_THAT(found[1].message, testing::HasSubstr("golden has NaN at throughput[0]"));
}

}  // namespace
}  // namespace assay::compare
