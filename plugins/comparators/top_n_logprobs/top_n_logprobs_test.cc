#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/compare/test_plugins.h"

namespace assay::compare {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::string request(const std::string& lists, const std::string& fields = "") {
  return R"({"0": {"generated_top_n_logprobs": )" + lists + fields + "}}";
}

CaseVerdict judge(const std::string& golden, const std::string& actual, std::optional<double> tolerance = {}) {
  JudgeOptions options = with_metrics({"top_n_logprobs"});
  if (tolerance) options.tolerances["top_n_logprobs"] = *tolerance;
  return judge_json(options, request(golden), request(actual));
}

const Finding& first(const CaseVerdict& verdict) { return verdict.metrics[0].findings[0]; }

TEST(TopNLogprobs, BothNamesAreServedAndTheFieldMayHaveEither) {
  for (const char* metric : {"top_n_logprobs", "generated_top_n_logprobs"}) {
    const CaseVerdict verdict = judge_json(with_metrics({metric}), request(R"([{"a": -1, "b": -2}])"),
                                           R"({"0": {"top_n_logprobs": [{"b": -2, "a": -1}]}})");
    EXPECT_EQ(verdict.verdict, Verdict::kIdentical) << metric;
    EXPECT_EQ(first(verdict).compared, 2U);
  }
}

TEST(TopNLogprobs, SharedEntriesFollowTheTolerance) {
  EXPECT_EQ(judge(R"([{"a": -1, "b": -2}])", R"([{"a": -1.0005, "b": -2}])").verdict, Verdict::kEquivalent);
  const CaseVerdict verdict = judge(R"([{"a": -1}, {"a": -1, "b": -2}])", R"([{"a": -1}, {"a": -1, "b": -2.25}])");
  EXPECT_EQ(verdict.verdict, Verdict::kDrift);
  EXPECT_EQ(first(verdict).index, 1);
  EXPECT_EQ(first(verdict).compared, 3U);
  EXPECT_EQ(first(verdict).differing, 1U);
  EXPECT_EQ(first(verdict).smallest_passing_tolerance, 0.25);
  EXPECT_THAT(verdict.reason, AllOf(HasSubstr("max |Δ| 0.25 at position 1 \"b\": golden -2, result -2.25"),
                                    HasSubstr("1 of 3 entries over tolerance 0.001")));
  EXPECT_EQ(judge(R"([{"b": -2}])", R"([{"b": -2.25}])", 0.25).verdict, Verdict::kEquivalent);
}

TEST(TopNLogprobs, AnotherLastEntryIsATieWithinToleranceOfTheBoundary) {
  // c and d are both missing on one side, each 0.0005 from the other side's last entry.
  const CaseVerdict tie = judge(R"([{"a": -1, "c": -3}])", R"([{"a": -1, "d": -3.0005}])");
  EXPECT_EQ(tie.verdict, Verdict::kEquivalent);
  EXPECT_THAT(first(tie).message, HasSubstr("1 ties at the boundary"));
  const CaseVerdict above = judge(R"([{"a": -1, "c": -3}])", R"([{"a": -1, "d": -2.9995}])");
  EXPECT_EQ(above.verdict, Verdict::kEquivalent);
  EXPECT_THAT(first(above).message, HasSubstr("2 ties at the boundary"));
  const CaseVerdict other = judge(R"([{"a": -1, "c": -3}])", R"([{"a": -1, "d": -2}])");
  EXPECT_EQ(other.verdict, Verdict::kDrift);
  EXPECT_EQ(first(other).smallest_passing_tolerance, 1);
  EXPECT_EQ(first(other).index, 0);
  EXPECT_THAT(other.reason, HasSubstr("the result lacks \"c\" (logprob -3), 1 from its last entry"));
}

TEST(TopNLogprobs, AnEntryMissingInTheMiddleIsBeyondTolerance) {
  EXPECT_EQ(judge(R"([{"a": -1, "b": -2, "c": -3}])", R"([{"a": -1, "c": -3, "d": -3.0001}])").verdict,
            Verdict::kDrift);
  EXPECT_EQ(judge(R"([{"a": -1, "c": -3, "d": -3.0001}])", R"([{"a": -1, "b": -2, "c": -3}])").verdict,
            Verdict::kDrift);
}

TEST(TopNLogprobs, AShorterListDoesNotHideBehindItsBoundary) {
  EXPECT_EQ(judge(R"([{"a": -1, "b": -2}])", R"([{"a": -1}])").verdict, Verdict::kDrift);
  EXPECT_EQ(judge(R"([{"a": -1}])", R"([{"a": -1, "b": -2}])").verdict, Verdict::kIdentical)
      << "longer lists hold more";
}

TEST(TopNLogprobs, EmptyListsAndOtherLengthsAreInvalid) {
  EXPECT_EQ(judge(R"([{"a": -1}, {"a": -1}])", R"([{"a": -1}])").verdict, Verdict::kInvalid);
  EXPECT_EQ(judge("[]", "[]").verdict, Verdict::kInvalid);
  const CaseVerdict empty = judge(R"([{"a": -1}, {"a": -1}])", R"([{"a": -1}, null])");
  EXPECT_EQ(empty.verdict, Verdict::kInvalid);
  EXPECT_THAT(empty.reason, HasSubstr("top-n list 1 of the result is empty"));
  EXPECT_EQ(judge(R"([{"a": -1}])", R"([{"a": NaN}])").verdict, Verdict::kInvalid);
  EXPECT_EQ(judge_json(with_metrics({"top_n_logprobs"}), request(R"([{"a": -1}])", R"(, "generated_tokens": [1, 2])"),
                       request(R"([{"a": -1}])", R"(, "generated_tokens": [1, 2])"))
                .verdict,
            Verdict::kInvalid);
}

TEST(TopNLogprobs, ASideWithoutListsIsNotComparable) {
  const CaseVerdict verdict =
      judge_json(with_metrics({"top_n_logprobs"}), request(R"([{"a": -1}])"), R"({"0": {"generated_tokens": [1]}})");
  EXPECT_EQ(verdict.verdict, Verdict::kNotComparable);
  EXPECT_THAT(verdict.reason, HasSubstr("the result lacks generated_top_n_logprobs"));
}

TEST(TopNLogprobs, AnEngineWithoutListsCannotSupplyThem) {
  JudgeOptions options = with_metrics({"generated_top_n_logprobs"});
  options.capabilities = ASSAY_CAP_LOGPROBS;
  const CaseVerdict verdict = judge_json(options, request(R"([{"a": -1}])"), request(R"([{"a": -1}])"));
  EXPECT_EQ(verdict.verdict, Verdict::kNotComparable);
  EXPECT_THAT(verdict.reason, HasSubstr("the engine cannot supply generated_top_n_logprobs"));
}

TEST(TopNLogprobs, TheLastListComparedIsTheOneWhereTokensPart) {
  const std::string golden = request(R"([{"a": -1}, {"a": -1}, {"a": -1}])", R"(, "generated_tokens": [1, 2, 3])");
  const auto judged = [&](const std::string& lists) {
    return judge_json(with_metrics({"top_n_logprobs"}), golden, request(lists, R"(, "generated_tokens": [1, 9, 3])"));
  };
  const CaseVerdict equal = judged(R"([{"a": -1}, {"a": -1}, {"z": -7}])");
  EXPECT_EQ(equal.verdict, Verdict::kDiverged);
  ASSERT_EQ(equal.metrics[0].findings.size(), 1U);
  EXPECT_EQ(first(equal).compared, 2U);
  EXPECT_THAT(first(equal).message, HasSubstr("only the lists of the 2 positions up to there are compared"));
  EXPECT_EQ(first(equal).smallest_passing_tolerance, 0) << "none would pass";
  EXPECT_THAT(equal.reason, Not(HasSubstr("smallest passing")));
  const CaseVerdict before = judged(R"([{"a": -1}, {"a": -3}, {"a": -1}])");
  ASSERT_EQ(before.metrics[0].findings.size(), 2U);
  EXPECT_EQ(first(before).verdict, Verdict::kDrift);
}

}  // namespace
}  // namespace assay::compare
