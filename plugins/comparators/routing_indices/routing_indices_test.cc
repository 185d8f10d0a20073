#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/compare/test_plugins.h"

namespace assay::compare {
namespace {

using testing::AllOf;
using testing::HasSubstr;

CaseVerdict judge(const std::string& golden, const std::string& actual, std::optional<double> tolerance = {}) {
  JudgeOptions options = with_metrics({"routing_indices"});
  if (tolerance) options.tolerances["routing_indices"] = *tolerance;
  return judge_json(options, golden, actual);
}

// One request; `fields` are JSON members beside routing_indices.
std::string routed(const std::string& sets, const std::string& fields = "") {
  return R"({"0": {"routing_indices": )" + sets + fields + "}}";
}

const Finding& first(const CaseVerdict& verdict) { return verdict.metrics[0].findings[0]; }

TEST(RoutingIndices, TheOrderOfExpertsMeansNothing) {
  const CaseVerdict verdict =
      judge(routed("[[[5, 1], [2, 3]], [[4, 0], [7, 6]]]"), routed("[[[1, 5], [2, 3]], [[0, 4], [6, 7]]]"));
  EXPECT_EQ(verdict.verdict, Verdict::kIdentical);
  EXPECT_EQ(first(verdict).compared, 4U);
  EXPECT_THAT(first(verdict).message, HasSubstr("4 sets of experts equal"));
}

TEST(RoutingIndices, TheFirstTokenAndItsFirstLayerAreNamed) {
  const CaseVerdict verdict = judge(routed("[[[0, 1], [2, 3]], [[4, 5], [6, 7]], [[0, 1], [2, 3]]]"),
                                    routed("[[[0, 1], [2, 3]], [[4, 5], [8, 6]], [[9, 1], [2, 9]]]"));
  EXPECT_EQ(verdict.verdict, Verdict::kDiverged);
  EXPECT_EQ(first(verdict).index, 1);
  EXPECT_EQ(first(verdict).compared, 6U);
  EXPECT_EQ(first(verdict).differing, 3U);
  EXPECT_THAT(first(verdict).message,
              AllOf(HasSubstr("3 of 6 sets of experts differ (50.00 % agree)"),
                    HasSubstr("first at token 1 layer 1: golden {6,7}, result {6,8}, margin not recorded"),
                    HasSubstr("differing by layer 0: 1, 1: 2")));
}

TEST(RoutingIndices, AGoldenOfSomeTokensJudgesThese) {
  const std::string golden = routed("[[[7, 8]], [[3, 4]]]", R"(, "routing_indices_token_indices": [2, 0])");
  EXPECT_EQ(judge(golden, routed("[[[3, 4]], [[0, 1]], [[8, 7]]]")).verdict, Verdict::kIdentical);
  const CaseVerdict verdict = judge(golden, routed("[[[3, 5]], [[0, 1]], [[8, 9]]]"));
  EXPECT_EQ(verdict.verdict, Verdict::kDiverged);
  EXPECT_EQ(first(verdict).index, 0) << "the least token comes first, not the first row";
  const CaseVerdict listed =
      judge(golden, routed("[[[3, 4]], [[7, 8]]]", R"(, "routing_indices_token_indices": [0, 2])"));
  EXPECT_EQ(listed.verdict, Verdict::kIdentical);
}

TEST(RoutingIndices, ATokenThatTheResultLacksNeverPasses) {
  const std::string golden = routed("[[[7, 8]], [[3, 4]]]", R"(, "routing_indices_token_indices": [0, 2])");
  const CaseVerdict shorter = judge(golden, routed("[[[7, 8]], [[3, 4]]]"));
  EXPECT_EQ(shorter.verdict, Verdict::kInvalid);
  EXPECT_THAT(shorter.reason, HasSubstr("the golden holds the routing of token 2, the result has 2 tokens"));
  const CaseVerdict other =
      judge(golden, routed("[[[7, 8]], [[3, 4]]]", R"(, "routing_indices_token_indices": [0, 1])"));
  EXPECT_EQ(other.verdict, Verdict::kNotComparable);
  EXPECT_EQ(judge(routed("[[[7, 8]]]"), R"({"0": {"generated_tokens": [1]}})").verdict, Verdict::kNotComparable);
  EXPECT_EQ(judge(routed("[[[7, 8]]]"), routed("[[[7, 8]], [[7, 8]]]")).verdict, Verdict::kInvalid);
}

TEST(RoutingIndices, OtherShapesAreInvalidAndBothAreShown) {
  const CaseVerdict verdict = judge(routed("[[[0, 1], [2, 3]]]"), routed("[[[0, 1]]]"));
  EXPECT_EQ(verdict.verdict, Verdict::kInvalid);
  EXPECT_THAT(verdict.reason, HasSubstr("golden (1, 2, 2), result (1, 1, 2)"));
  EXPECT_THAT(judge(routed("[[[0, 1]]]"), routed("[[[0]]]")).reason, HasSubstr("golden (1, 1, 2), result (1, 1, 1)"));
  EXPECT_THAT(judge(routed("[[[0, 1]]]"), routed("[]")).reason, HasSubstr("of the result is empty: shape (0, 0, 0)"));
}

TEST(RoutingIndices, AnExpertTwiceInOneSetIsInvalidOnEitherSide) {
  const CaseVerdict result = judge(routed("[[[0, 1]], [[0, 1]]]"), routed("[[[0, 1]], [[1, 1]]]"));
  EXPECT_EQ(result.verdict, Verdict::kInvalid);
  EXPECT_THAT(result.reason, HasSubstr("of the result name an expert twice at token 1 layer 0"));
  EXPECT_THAT(judge(routed("[[[1, 0, 1]]]"), routed("[[[0, 1, 2]]]")).reason, HasSubstr("of the golden name"));
}

TEST(RoutingIndices, PositionsThatAreNoneAreInvalid) {
  const auto golden = [](const std::string& positions) {
    return routed("[[[0, 1]], [[0, 1]]]", R"(, "routing_indices_token_indices": )" + positions);
  };
  EXPECT_THAT(judge(golden("[1, 1]"), routed("[[[0, 1]], [[0, 1]]]")).reason, HasSubstr("token 1 is listed twice"));
  EXPECT_THAT(judge(golden("[0, -1]"), routed("[[[0, 1]], [[0, 1]]]")).reason, HasSubstr("token -1 is no position"));
}

TEST(RoutingIndices, ANearTieAtTheBoundaryIsEquivalent) {
  const std::string golden = routed("[[[0, 1]], [[2, 3]]]");
  const auto actual = [](const std::string& margins) {
    return routed("[[[0, 1]], [[2, 4]]]", R"(, "routing_margins": )" + margins);
  };
  const CaseVerdict tie = judge(golden, actual("[[0.5], [0.0000001]]"));  // 2 ULP of fp32 at 1: 2.4e-7
  EXPECT_EQ(tie.verdict, Verdict::kEquivalent);
  EXPECT_THAT(first(tie).message,
              AllOf(HasSubstr("margin 1e-07"), HasSubstr("1 near-ties within 2.38e-07 (2 ULP of fp32")));
  EXPECT_EQ(judge(golden, actual("[[0], [0.000001]]")).verdict, Verdict::kDiverged);
  EXPECT_EQ(judge(golden, actual("[[0], [0.000001]]"), 0.001).verdict, Verdict::kEquivalent);
  EXPECT_EQ(judge(golden, actual("[[0], [0.25]]"), 0.25).verdict, Verdict::kEquivalent);
  EXPECT_EQ(first(judge(golden, actual("[[0], [0.25]]"))).smallest_passing_tolerance, 0.25);
  EXPECT_EQ(judge(golden, actual("[[0], [Infinity]]"), 1000).verdict, Verdict::kDiverged);
  EXPECT_EQ(judge(golden, actual("[[0], [NaN]]"), 1000).verdict, Verdict::kDiverged);
}

TEST(RoutingIndices, OneUnexplainedSetIsEnoughToDiverge) {
  for (const char* far : {"[[-5], [0]]", "[[-Infinity], [0]]", "[[NaN], [0]]"}) {
    EXPECT_EQ(judge(routed("[[[0, 1]], [[2, 3]]]"),
                    routed("[[[0, 9]], [[2, 3]]]", std::string(R"(, "routing_margins": )") + far))
                  .verdict,
              Verdict::kDiverged)
        << far << ": a better expert was left out, or nobody knows";
  }
  const std::string margins = R"(, "routing_margins": [[0], [0]])";
  const CaseVerdict two = judge(routed("[[[0, 1]], [[2, 3]]]"), routed("[[[0, 9]], [[4, 5]]]", margins));
  EXPECT_EQ(two.verdict, Verdict::kDiverged) << "a margin at the boundary does not explain two exchanged experts";
  EXPECT_THAT(two.reason, HasSubstr("1 near-ties within 2.38e-07 (2 ULP of fp32 scores), 1 unexplained"));
  EXPECT_EQ(judge(routed("[[[0, 1]], [[2, 3]]]"), routed("[[[0, 9]], [[2, 5]]]", margins)).verdict,
            Verdict::kEquivalent);
}

TEST(RoutingIndices, WhatFollowsFromANearTieDriftsAndWhatDoesNotDiverges) {
  // Tokens 0, 1, 2 of layers 0, 1, 2; a near-tie at token 1 layer 1.
  const std::string golden = routed("[[[0], [0], [0]], [[0], [0], [0]], [[0], [0], [0]]]");
  const auto judged = [&](const std::string& sets) {
    return judge(golden, routed(sets, R"(, "routing_margins": [[1, 1, 1], [1, 0, 1], [1, 1, 1]])"));
  };
  EXPECT_EQ(judged("[[[0], [0], [0]], [[0], [9], [0]], [[0], [0], [0]]]").verdict, Verdict::kEquivalent);
  const CaseVerdict follows = judged("[[[0], [0], [0]], [[0], [9], [9]], [[0], [0], [9]]]");
  EXPECT_EQ(follows.verdict, Verdict::kDrift) << "higher layers of this token and of later ones";
  EXPECT_THAT(first(follows).message,
              HasSubstr("1 near-ties within 2.38e-07 (2 ULP of fp32 scores), 2 follow from them"));
  EXPECT_EQ(first(follows).smallest_passing_tolerance, 1);
  EXPECT_EQ(judged("[[[0], [0], [0]], [[0], [9], [0]], [[0], [9], [0]]]").verdict, Verdict::kDiverged)
      << "the same layer of a later token: its router ran on what lies below the tie";
  EXPECT_EQ(judged("[[[0], [0], [9]], [[0], [9], [0]], [[0], [0], [0]]]").verdict, Verdict::kDiverged)
      << "an earlier token";
  EXPECT_EQ(judged("[[[0], [0], [0]], [[0], [9], [0]], [[9], [0], [0]]]").verdict, Verdict::kDiverged)
      << "a lower layer";
}

TEST(RoutingIndices, WhereTokensPartTheSetsBeforeAreCompared) {
  // Prompt of 2 tokens (logprobs: 1 + 2), tokens part at generated token 1 = position 3.
  const std::string golden =
      routed("[[[0]], [[1]], [[2]], [[3]]]", R"(, "generated_tokens": [5, 6], "logprobs": [-1, -1, -1])");
  const auto actual = [](const std::string& sets) {
    return routed(sets, R"(, "generated_tokens": [5, 7], "logprobs": [-1, -1, -1])");
  };
  const CaseVerdict equal = judge(golden, actual("[[[0]], [[1]], [[2]], [[9]]]"));
  EXPECT_EQ(equal.verdict, Verdict::kDiverged);
  ASSERT_EQ(equal.metrics[0].findings.size(), 1U);
  EXPECT_EQ(first(equal).compared, 3U);
  EXPECT_EQ(first(equal).index, 3);
  EXPECT_THAT(first(equal).message, AllOf(HasSubstr("tokens part at generated token 1"), HasSubstr("golden 6")));
  const CaseVerdict different = judge(golden, actual("[[[0]], [[1]], [[8]], [[9]]]"));
  ASSERT_EQ(different.metrics[0].findings.size(), 2U);
  EXPECT_THAT(first(different).message, HasSubstr("1 of 3 sets of experts differ"));
}

TEST(RoutingIndices, WithoutThePromptsLengthNothingIsTakenForShared) {
  const auto side = [](const std::string& token) {
    return routed("[[[0]]]", R"(, "routing_indices_token_indices": [0], "generated_tokens": )" + token);
  };
  const CaseVerdict verdict = judge(side("[5]"), side("[6]"));
  EXPECT_EQ(verdict.verdict, Verdict::kDiverged);
  EXPECT_THAT(verdict.reason, HasSubstr("the prompt's length is not recorded"));
}

}  // namespace
}  // namespace assay::compare
