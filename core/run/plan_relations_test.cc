// Cases that are judged by relations: what the plan makes of them.
#include <gmock/gmock.h>

#include <algorithm>

#include "core/plugin/registry.h"
#include "core/run/plan.h"
#include "core/run/read_run.h"
#include "core/run/relation_rows.h"
#include "core/run/run_fixture.h"

namespace assay::run {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const std::string kEngine = "  engine: misbehaving\n";
const std::string kThree = kEngine + "  metamorphic: [prefix_cache, save_load, thread_count]\n";

class PlanRelations : public Run {
 protected:
  void SetUp() override {
    Run::SetUp();
    registry_ = std::make_unique<plugin::PluginRegistry>(options_.plugins);
  }
  Plan plan() {
    options_.cases = *discover::discover({(dir_ / "cases").string()});
    Result<Plan> made = make_plan(options_, *registry_);
    EXPECT_TRUE(made.ok()) << made.status().message();
    return made ? *std::move(made) : Plan();
  }
  static std::vector<std::string> names(const Plan& plan) {
    std::vector<std::string> list;
    for (const PlannedCase& one : plan.cases) list.push_back(one.outcome.name);
    return list;
  }

  std::unique_ptr<plugin::PluginRegistry> registry_;
};

TEST_F(PlanRelations, EachIsARowWithAFolderOfItsOwnAndAllShareOneLoad) {
  add_case("a", {"ok hallo"}, "METRICS: []\n", kThree);
  add_case("b", {"ok hallo"});
  const Plan made = plan();
  EXPECT_THAT(names(made), ElementsAre("a@prefix_cache", "a@save_load", "a@thread_count", "b"));
  ASSERT_THAT(made.groups, SizeIs(1));
  EXPECT_THAT(made.groups[0].cases, ElementsAre(0, 1, 2, 3));
  for (size_t i = 0; i < 3; ++i) {
    const PlannedCase& row = made.cases[i];
    EXPECT_EQ(row.order.id, row.outcome.name);
    EXPECT_EQ(row.order.name, row.outcome.name);
    EXPECT_EQ(row.outcome.name, "a@" + row.order.relation);
    EXPECT_EQ(row.outcome.relation, row.order.relation);
    EXPECT_THAT(row.order.output_path, IsEmpty());
    EXPECT_THAT(row.outcome.reproduce, HasSubstr("cases/a --filter '*@" + row.order.relation + "'"));
    EXPECT_GT(row.cost, made.cases[3].cost);
  }
  EXPECT_EQ(made.cases[3].order.relation, "");
}

TEST_F(PlanRelations, FlagGivesEveryInferenceCaseAllOrTheOnesItNames) {
  add_case("a", {"ok hallo"}, "METRICS: []\n", kThree);
  add_case("b", {"ok hallo"});
  options_.metamorphic = true;
  const Plan made = plan();
  EXPECT_THAT(made.cases, SizeIs(3 + metamorphic::relation_table().size()));
  EXPECT_EQ(made.cases.back().outcome.name, "b@save_load");
  EXPECT_THAT(made.cases.back().outcome.reproduce, HasSubstr(" --metamorphic --filter '*@save_load'"));
}

TEST_F(PlanRelations, GoldensAndKnownCompletionsAreNotLookedFor) {
  add_case("a", {"ok hallo"}, "", kEngine + "  golden: known_completion\n  known_completion: [nowhere/at/all.txt]\n");
  EXPECT_EQ(plan().cases.at(0).outcome.verdict.verdict, Verdict::kInvalid);
  options_.metamorphic = true;
  const Plan made = plan();
  ASSERT_THAT(made.cases, SizeIs(metamorphic::relation_table().size()));
  EXPECT_FALSE(made.cases[0].settled) << made.cases[0].outcome.verdict.reason;
  EXPECT_FALSE(made.cases[0].order.known_completion);
}

TEST_F(PlanRelations, ParametersOfTheCaseGoOverTheDefaults) {
  add_case("a", {"ok hallo"}, "METRICS: []\n", kEngine + "  metamorphic: {batches: [5], new_tokens: 3}\n");
  const metamorphic::Parameters parameters = plan().cases.at(0).order.metamorphic;
  const metamorphic::Parameters defaults;
  EXPECT_THAT(parameters.batches, ElementsAre(5));
  EXPECT_EQ(parameters.new_tokens, 3);
  EXPECT_EQ(parameters.chunks, defaults.chunks);
  EXPECT_EQ(parameters.threads, defaults.threads);
  EXPECT_EQ(parameters.prompt_tokens, defaults.prompt_tokens);
}

TEST_F(PlanRelations, FilterSeesTheNameWithTheRelation) {
  add_case("a", {"ok hallo"}, "METRICS: []\n", kThree + "  tags: [small]\n");
  add_case("b", {"ok hallo"});
  const auto selected = [this](const std::string& filter) {
    options_.filter = filter;
    return names(plan());
  };
  EXPECT_THAT(selected("*@save_load"), ElementsAre("a@save_load"));
  EXPECT_THAT(selected("a"), ElementsAre("a@prefix_cache", "a@save_load", "a@thread_count"));
  EXPECT_THAT(selected("tag:small and not *@*e*"), IsEmpty());
  EXPECT_THAT(selected("not *@*"), ElementsAre("b"));
  EXPECT_THAT(selected("engine:misbehaving and *@p*"), ElementsAre("a@prefix_cache"));
  options_.filter = "*@save_load";
  EXPECT_EQ(plan().filtered, 3U);
}

TEST_F(PlanRelations, WhatStopsTheWholeCaseIsSaidOnce) {
  add_case("broken", {"ok hallo"}, "", kEngine + "  metamorphic: [prefix-cache, save_load]\n");
  add_case("absent", {"ok hallo"}, "", kThree + "  requires: [NO_SUCH_VARIABLE]\n");
  add_case("unknown", {"ok hallo"}, "", "  engine: misbehavin\n  metamorphic: all\n");
  add_case("recorded", {"ok hallo"}, "", "  engine: replay\n  metamorphic: all\n");
  const Plan made = plan();
  EXPECT_THAT(names(made), ElementsAre("absent", "broken", "recorded", "unknown"));
  EXPECT_EQ(made.cases[0].outcome.verdict.verdict, Verdict::kSkipped);
  EXPECT_EQ(made.cases[1].outcome.verdict.verdict, Verdict::kInvalid);
  EXPECT_THAT(made.cases[1].outcome.verdict.reason, HasSubstr("did you mean 'prefix_cache'?"));
  EXPECT_EQ(made.cases[2].outcome.verdict.verdict, Verdict::kNotComparable);
  EXPECT_THAT(made.cases[2].outcome.verdict.reason, HasSubstr("engine replay gives recorded results"));
  EXPECT_EQ(made.cases[3].outcome.verdict.verdict, Verdict::kInvalid);
  options_.filter = "*@save_load";
  EXPECT_THAT(names(plan()), ElementsAre("absent@save_load", "broken", "recorded@save_load", "unknown@save_load"));
}

TEST_F(PlanRelations, RunNamesThemInItsJournal) {
  add_case("a", {"ok hallo"}, "METRICS: []\n", kThree);
  options_.filter = "*@save_load";
  run();
  ASSERT_THAT(summary().outcomes, SizeIs(1));
  EXPECT_EQ(outcome("a@save_load").relation, "save_load");
  const Result<RunRecord> read = read_run(options_.output);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->summary.outcomes.at(0).name, "a@save_load");
  EXPECT_EQ(read->summary.outcomes.at(0).relation, "save_load");
}

TEST(RelationRows, TokensGrowWithBatchesAndChunks) {
  metamorphic::Parameters parameters;
  for (const metamorphic::RelationInfo& info : metamorphic::relation_table()) {
    EXPECT_GT(relation_tokens(info.name, parameters), 0) << info.name;
  }
  const double before = relation_tokens("solo_vs_batch", parameters);
  parameters.batches.push_back(64);
  EXPECT_GT(relation_tokens("solo_vs_batch", parameters), before);
  EXPECT_EQ(row_name("moe/x", "save_load"), "moe/x@save_load");
  EXPECT_EQ(row_name("moe/x", ""), "moe/x");
}

}  // namespace
}  // namespace assay::run
