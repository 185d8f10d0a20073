// What the ways of relations ask an engine for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "core/metamorphic/relation_input.h"

namespace assay::metamorphic {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// Asks of the last way that ran for a relation.
std::vector<Ask> last_asks(const FakeLaboratory& laboratory) { return laboratory.seen.back().calls.at(0).asks; }

TEST(WaysOfRelations, PromptsAreLongerThanTwoBlocksUnlessTheModelHasFewerPositions) {
  FakeLaboratory laboratory;
  RelationInput input = input_for(Relation::kChunkedPrefill, laboratory);
  EXPECT_EQ(judge_relation(input).verdict.verdict, Verdict::kIdentical);
  EXPECT_EQ(laboratory.seen.back().calls.at(0).asks.at(0).ids.size(), 513u);
  input.max_positions = 100;
  const CaseVerdict verdict = judge_relation(input).verdict;
  EXPECT_EQ(laboratory.seen.back().calls.at(0).asks.at(0).ids.size(), 92u);
  EXPECT_EQ(verdict.verdict, Verdict::kNotComparable);  // no prompt takes two chunks of 255
  EXPECT_THAT(verdict.reason,
              HasSubstr("chunks of 255: a prompt in 1 chunk, expected at least 2 (if sizes are why, raise "
                        "prompt_tokens or name smaller chunks in ASSAY.metamorphic)"));
}

TEST(WaysOfRelations, GreedyCasesAreAskedWithDrawnTokensTooWhereTheEngineCanDraw) {
  FakeLaboratory laboratory;
  RelationInput input = input_for(Relation::kShuffledOrder, laboratory);
  const auto drawn = [&] {
    laboratory.seen.clear();
    EXPECT_EQ(judge_relation(input).verdict.verdict, Verdict::kIdentical);
    return std::count_if(laboratory.seen.begin(), laboratory.seen.end(), [](const Way& way) { return way.drawn; });
  };
  input.greedy = true;
  EXPECT_EQ(drawn(), 0) << "the engine has no seed";
  laboratory.can |= ASSAY_CAP_SEED;
  EXPECT_EQ(drawn(), 3) << "reference and two orders";
  input.greedy = false;
  EXPECT_EQ(drawn(), 0) << "the case draws itself";
}

TEST(WaysOfRelations, EveryRequestFitsIntoTheModelsPositions) {
  for (const RelationInfo& info : relation_table()) {
    FakeLaboratory laboratory;
    RelationInput input = input_for(info.relation, laboratory);
    input.max_positions = 60;
    judge_relation(input);
    for (const Way& way : laboratory.seen) {
      for (const Call& call : way.calls) {
        for (const Ask& ask : call.asks) {
          EXPECT_LE(ask.ids.size() + static_cast<size_t>(ask.new_tokens), 61u) << info.name << ", " << way.name;
        }
      }
    }
  }
}

TEST(WaysOfRelations, RequestsThatInterruptEachOtherShareNoBeginningHoweverAlikeThePromptsAre) {
  FakeLaboratory laboratory;
  laboratory.engine_options.insert({"prefix_caching_eviction_policy", "termination_id"});
  RelationInput input = input_for(Relation::kPreemptResume, laboratory);
  input.prompts = {"The quick brown fox", "The quick brown fox", "The quick brown fox jumps"};
  EXPECT_EQ(judge_relation(input).verdict.verdict, Verdict::kIdentical);
  std::set<int32_t> begun;
  for (const Ask& ask : last_asks(laboratory)) EXPECT_TRUE(begun.insert(ask.ids.at(0)).second) << ask.id;
  for (const Way& way : laboratory.seen) {  // none ends before it needs room, in either way
    if (way.name.find("room") == std::string::npos) continue;
    EXPECT_EQ(way.engine_options.at("termination_id"), "-1") << way.name;
  }
}

TEST(WaysOfRelations, FewPromptsOfFewTokensHaveOtherNeighboursToo) {
  for (const size_t tokens : {1u, 2u, 7u, 8u, 14u}) {
    FakeLaboratory laboratory;
    RelationInput input = input_for(Relation::kChangedNeighbours, laboratory);
    input.prompts = {std::string("abcdefghijklmn").substr(0, tokens), "a"};
    const CaseVerdict verdict = judge_relation(input).verdict;
    EXPECT_EQ(verdict.verdict, Verdict::kIdentical) << tokens << " tokens: " << verdict.reason;
  }
}

TEST(WaysOfRelations, NewTokensThatLeaveNoRoomForAPromptAreInvalid) {
  FakeLaboratory laboratory;
  RelationInput input = input_for(Relation::kPrefillVsDecode, laboratory);
  input.max_positions = 64;
  input.parameters.new_tokens = 64;
  const CaseVerdict verdict = judge_relation(input).verdict;
  EXPECT_EQ(verdict.verdict, Verdict::kInvalid);
  EXPECT_THAT(verdict.reason, AllOf(HasSubstr("new_tokens is 64"), HasSubstr("64 positions; lower it")));
  EXPECT_TRUE(laboratory.seen.empty());
  input.parameters.new_tokens = 63;
  EXPECT_EQ(judge_relation(input).verdict.verdict, Verdict::kIdentical);
}

TEST(WaysOfRelations, LogprobsOfPromptsAreAskedForThoughTheCaseLeavesThemOut) {
  for (const Relation relation : {Relation::kStaticVsBuffered, Relation::kPrefillVsDecode, Relation::kPrefixCache}) {
    FakeLaboratory laboratory;
    laboratory.engine_options.insert("skip_prompt_logprobs");
    EXPECT_EQ(judged(relation, laboratory).verdict, Verdict::kIdentical);
    const Way& way = laboratory.seen.back();
    EXPECT_EQ(way.engine_options.count("skip_prompt_logprobs"), way.prompt_logprobs ? 1u : 0u) << way.name;
    EXPECT_EQ(way.prompt_logprobs, relation != Relation::kPrefixCache);
    if (way.prompt_logprobs) {
      EXPECT_EQ(way.engine_options.at("skip_prompt_logprobs"), "false");
    }
  }
}

TEST(WaysOfRelations, ACaseThatSuspendsItsRequestsDoesNotDoSoInARelation) {
  FakeLaboratory laboratory;
  laboratory.engine_options.insert("suspend_interval");
  judged(Relation::kPreemptResume, laboratory);
  ASSERT_GT(laboratory.seen.size(), 3u) << "two that look at the prompts, reference and changed ways";
  for (size_t i = 2; i < laboratory.seen.size(); ++i) {
    EXPECT_EQ(laboratory.seen[i].engine_options.at("suspend_interval"), "0") << laboratory.seen[i].name;
  }
}

TEST(WaysOfRelations, AnEngineThatIgnoresIdsIsAskedByText) {
  FakeLaboratory laboratory;
  laboratory.takes_ids = false;
  EXPECT_EQ(judged(Relation::kShuffledOrder, laboratory).verdict, Verdict::kIdentical);
  for (const Ask& ask : laboratory.seen.back().calls.at(0).asks) EXPECT_TRUE(ask.ids.empty() && !ask.text.empty());
}

TEST(WaysOfRelations, WithoutPromptIdsTextsAreAskedAndRelationsThatNeedLengthsSaySo) {
  FakeLaboratory laboratory;
  laboratory.tells_ids = false;
  EXPECT_EQ(judged(Relation::kShuffledOrder, laboratory).verdict, Verdict::kIdentical);
  for (const Ask& ask : laboratory.seen.back().calls.at(0).asks) EXPECT_TRUE(ask.ids.empty() && !ask.text.empty());
  for (const Relation relation : {Relation::kChunkedPrefill, Relation::kPrefixCache, Relation::kPreemptResume,
                                  Relation::kStopContinue, Relation::kPrefillVsDecode}) {
    const CaseVerdict verdict = judged(relation, laboratory);
    EXPECT_EQ(verdict.verdict, Verdict::kNotComparable) << info_of(relation).name;
    EXPECT_THAT(verdict.reason, HasSubstr("tells no prompt ids"));
  }
}

}  // namespace
}  // namespace assay::metamorphic
