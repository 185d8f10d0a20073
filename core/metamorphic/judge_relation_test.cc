// Every relation against an engine with planted faults: it catches its own, lets good engines pass, and does not speak
// where its mechanism is off.
#include "core/metamorphic/judge_relation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/metamorphic/relation_input.h"

namespace assay::metamorphic {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// The faults that a relation is there for, and the option that carries its mechanism.
struct Case {
  Relation relation;
  std::vector<Planted> faults;
  std::string idle;  // option or thing whose idleness stops the mechanism; empty: nothing could
  std::string told;  // words of the line that says so
};

std::vector<Case> cases() {
  return {
      {Relation::kSoloVsBatch, {Planted::kBatchSize, Planted::kSlot}, "max_requests", "in one forward"},
      {Relation::kShuffledOrder, {Planted::kSlot}, "", ""},
      {Relation::kChangedNeighbours, {Planted::kNeighbours, Planted::kSlot}, "", ""},
      {Relation::kRepeatedCall, {Planted::kEarlierRequests}, "", ""},
      {Relation::kPrefixCache, {Planted::kCache}, "prefix_caching", "0 tokens from the cache, expected at least 1"},
      {Relation::kChunkedPrefill, {Planted::kChunks}, "chunked_prefill", "a prompt in 1 chunk, expected at least 2"},
      {Relation::kPreemptResume, {Planted::kPreemption}, "block_count", "0 preemptions, expected at least 1"},
      {Relation::kStopContinue, {Planted::kPromptBorder}, "", ""},
      {Relation::kStaticVsBuffered, {Planted::kEngine}, "engine", "expected two engines"},
      {Relation::kPrefillVsDecode, {Planted::kPrefill}, "", ""},
      {Relation::kThreadCount, {Planted::kThreads}, "threads", "expected 2 threads in it"},
      {Relation::kSaveLoad, {Planted::kFiles}, "files", "expected new files"},
  };
}

TEST(JudgeRelation, AGoodEnginePassesEveryRelationWithANumber) {
  for (const Case& one : cases()) {
    FakeLaboratory laboratory;
    const CaseVerdict verdict = judged(one.relation, laboratory);
    EXPECT_EQ(verdict.verdict, Verdict::kIdentical) << info_of(one.relation).name << ": " << verdict.reason;
    EXPECT_THAT(verdict.reason, HasSubstr("values equal")) << info_of(one.relation).name;
    EXPECT_EQ(verdict.golden, "reference.json");
    ASSERT_FALSE(verdict.metrics.empty());
    EXPECT_EQ(verdict.metrics[0].metric, info_of(one.relation).name);
    EXPECT_GT(verdict.metrics[0].findings.at(0).compared, 0u);
  }
}

TEST(JudgeRelation, EveryRelationCatchesTheFaultsItIsThereFor) {
  for (const Case& one : cases()) {
    for (const Planted fault : one.faults) {
      FakeLaboratory laboratory;
      laboratory.planted = fault;
      const RelationOutcome outcome = judge_relation(input_for(one.relation, laboratory));
      EXPECT_THAT(outcome.verdict.verdict, testing::AnyOf(Verdict::kDrift, Verdict::kDiverged))
          << info_of(one.relation).name << ": " << outcome.verdict.reason;
      EXPECT_FALSE(outcome.verdict.evidence.empty()) << info_of(one.relation).name;
      EXPECT_FALSE(outcome.reference.requests.empty());
      EXPECT_EQ(outcome.reference.requests.size(), outcome.changed.requests.size());
    }
  }
}

TEST(JudgeRelation, TokensThatDependOnTheMechanismDiverge) {
  for (const Case& one : cases()) {
    if (one.relation == Relation::kPrefillVsDecode) continue;  // compares no tokens
    FakeLaboratory laboratory;
    laboratory.planted = one.faults.front();
    laboratory.changes_tokens = true;
    const CaseVerdict verdict = judged(one.relation, laboratory);
    EXPECT_EQ(verdict.verdict, Verdict::kDiverged) << info_of(one.relation).name << ": " << verdict.reason;
  }
}

TEST(JudgeRelation, AMechanismThatDidNotFireIsNotComparableWithNumbers) {
  for (const Case& one : cases()) {
    if (one.idle.empty()) continue;
    FakeLaboratory laboratory;
    laboratory.idle = {one.idle};
    const CaseVerdict verdict = judged(one.relation, laboratory);
    EXPECT_EQ(verdict.verdict, Verdict::kNotComparable) << info_of(one.relation).name << ": " << verdict.reason;
    EXPECT_THAT(verdict.reason, HasSubstr(one.told)) << info_of(one.relation).name;
  }
}

TEST(JudgeRelation, AMissingOptionIsNotComparableAndNamed) {
  for (const auto& [relation, option] : {std::pair(Relation::kSoloVsBatch, "max_requests"),
                                         {Relation::kPrefixCache, "prefix_caching"},
                                         {Relation::kChunkedPrefill, "max_chunk"},
                                         {Relation::kPreemptResume, "block_count"}}) {
    FakeLaboratory laboratory;
    laboratory.engine_options.erase(option);
    const CaseVerdict verdict = judged(relation, laboratory);
    EXPECT_EQ(verdict.verdict, Verdict::kNotComparable);
    EXPECT_THAT(verdict.reason, AllOf(HasSubstr(option), HasSubstr("static_legacy")));
  }
  FakeLaboratory laboratory;
  laboratory.backend_options.clear();
  EXPECT_THAT(judged(Relation::kThreadCount, laboratory).reason, HasSubstr("lack threads"));
  laboratory.has_other_engine = false;
  EXPECT_THAT(judged(Relation::kStaticVsBuffered, laboratory).reason, HasSubstr("no engine buffered"));
  laboratory.saves = false;
  const CaseVerdict unsaved = judged(Relation::kSaveLoad, laboratory);
  EXPECT_EQ(unsaved.verdict, Verdict::kNotComparable);
  EXPECT_THAT(unsaved.reason, HasSubstr("cannot be written anew"));
}

TEST(JudgeRelation, AnEngineThatTellsNoCountersIsNotTakenAtItsWord) {
  for (const Relation relation : {Relation::kSoloVsBatch, Relation::kChangedNeighbours, Relation::kPrefixCache,
                                  Relation::kChunkedPrefill, Relation::kPreemptResume}) {
    FakeLaboratory laboratory;
    laboratory.counts = false;
    const CaseVerdict verdict = judged(relation, laboratory);
    EXPECT_EQ(verdict.verdict, Verdict::kNotComparable) << info_of(relation).name;
    EXPECT_THAT(verdict.reason, HasSubstr("tells no engine_counters"));
  }
}

TEST(JudgeRelation, WhoDeclaresALevelMustGiveEqualBitsWhereOthersHaveTolerance) {
  FakeLaboratory laboratory;
  laboratory.planted = Planted::kThreads;
  laboratory.shift = 0x1p-30;
  const CaseVerdict tolerated = judged(Relation::kThreadCount, laboratory);
  EXPECT_EQ(tolerated.verdict, Verdict::kEquivalent) << tolerated.reason;
  EXPECT_THAT(tolerated.reason, AllOf(HasSubstr("within tolerance"), HasSubstr("L1 is not declared")));
  laboratory.determinism = ASSAY_CAP_L1;
  const CaseVerdict exact = judged(Relation::kThreadCount, laboratory);
  EXPECT_EQ(exact.verdict, Verdict::kDrift) << exact.reason;
  EXPECT_THAT(exact.reason, HasSubstr("L1 is declared"));
  laboratory.planted = Planted::kNothing;
  EXPECT_THAT(judged(Relation::kThreadCount, laboratory).reason, HasSubstr("L1 is declared: equal bits alone pass"));
  laboratory.planted = Planted::kChunks;  // L3 is another level
  EXPECT_EQ(judged(Relation::kChunkedPrefill, laboratory).verdict, Verdict::kEquivalent);
}

TEST(JudgeRelation, AToleranceOfTheCaseHoldsWhereNoLevelIsDeclared) {
  FakeLaboratory laboratory;
  laboratory.planted = Planted::kFiles;
  laboratory.shift = 0.25;
  RelationInput input = input_for(Relation::kSaveLoad, laboratory);
  input.tolerances["logprobs"] = 0.5;
  EXPECT_EQ(judge_relation(input).verdict.verdict, Verdict::kEquivalent);
  laboratory.determinism = ASSAY_CAP_L1;
  EXPECT_EQ(judge_relation(input).verdict.verdict, Verdict::kDrift);
}

TEST(JudgeRelation, TheReasonNamesTheWorstPairAndCountsTheOthers) {
  FakeLaboratory laboratory;
  laboratory.planted = Planted::kBatchSize;
  laboratory.changes_tokens = true;
  const CaseVerdict verdict = judged(Relation::kSoloVsBatch, laboratory);
  EXPECT_THAT(verdict.reason, HasSubstr("batches of 3: "));
  EXPECT_THAT(verdict.reason, HasSubstr("and 4 of 7 ways more"));
  ASSERT_EQ(verdict.metrics[0].findings.size(), 7u);
  EXPECT_EQ(verdict.metrics[0].findings[0].verdict, Verdict::kIdentical);
  EXPECT_EQ(verdict.metrics[0].findings[2].verdict, Verdict::kDiverged);
  EXPECT_THAT(verdict.metrics[1].findings.at(0).message, HasSubstr("batches of 3: "));
}

TEST(JudgeRelation, ARequestThatFailsIsInvalidAndNamesWayAndRequest) {
  FakeLaboratory laboratory;
  laboratory.failing = "batches of 7";
  laboratory.determinism = ASSAY_CAP_L2;
  const CaseVerdict verdict = judged(Relation::kSoloVsBatch, laboratory);
  EXPECT_EQ(verdict.verdict, Verdict::kInvalid);
  EXPECT_THAT(verdict.reason, HasSubstr("batches of 7: request 0: too long"));
  EXPECT_THAT(verdict.reason, HasSubstr("; L2 is declared")) << "the other ways were judged so";
  laboratory.failing = "one request at a time";
  EXPECT_THAT(judged(Relation::kSoloVsBatch, laboratory).reason,
              HasSubstr("one request at a time: request 0: too long"));
}

TEST(JudgeRelation, ACasePromptThatTheEngineRefusesIsInvalid) {
  FakeLaboratory laboratory;
  laboratory.failing = "the case's prompts";
  const CaseVerdict verdict = judged(Relation::kShuffledOrder, laboratory);
  EXPECT_EQ(verdict.verdict, Verdict::kInvalid);
  EXPECT_EQ(verdict.reason, "shuffled_order: request 0: too long");
}

TEST(JudgeRelation, RequestsThatEndAtOnceInBothWaysAreNoEvidence) {
  FakeLaboratory laboratory;
  laboratory.ends_at_once = true;
  const CaseVerdict verdict = judged(Relation::kShuffledOrder, laboratory);
  EXPECT_EQ(verdict.verdict, Verdict::kNotComparable);
  EXPECT_THAT(verdict.reason, HasSubstr("no tokens to compare"));
}

TEST(JudgeRelation, ParametersOutsideOfTheirRangeAreInvalid) {
  FakeLaboratory laboratory;
  RelationInput input = input_for(Relation::kSoloVsBatch, laboratory);
  input.parameters.batches.clear();
  EXPECT_EQ(judge_relation(input).verdict.verdict, Verdict::kInvalid);
  input.parameters = {};
  input.parameters.new_tokens = 1;
  EXPECT_THAT(judge_relation(input).verdict.reason, HasSubstr("new_tokens: 1, expected 2 or more"));
  input.parameters = {};
  input.parameters.prompt_tokens = 1;
  EXPECT_THAT(judge_relation(input).verdict.reason, HasSubstr("prompt_tokens: 1, expected 2 or more"));
  input.parameters = {};
  input.prompts.clear();
  EXPECT_THAT(judge_relation(input).verdict.reason, HasSubstr("no prompts"));
}

}  // namespace
}  // namespace assay::metamorphic
