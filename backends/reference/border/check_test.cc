#include <gmock/gmock.h>

#include "backends/reference/border/model.h"

namespace assay::backend {
namespace {

using ::testing::HasSubstr;

struct Fixture {
  model::ModelConfig config;
  Cache cache;
  std::vector<int32_t> ids = {1, 2, 3};
  std::vector<int32_t> blocks = {0, 1};
  assay_run run{};

  Fixture() {
    config.vocab_size = 10;
    cache.block_size = 4;
    cache.block_count = 3;
    run.ids = ids.data();
    run.count = 3;
    run.blocks = blocks.data();
    run.block_count = 2;
  }
  std::string message() const { return check_runs(config, cache, {&run, 1}).message(); }
};

TEST(CheckRuns, AcceptsAProperRun) { EXPECT_EQ(Fixture().message(), ""); }

TEST(CheckRuns, NamesAnIdOutsideTheVocabularyAndItsPosition) {
  Fixture f;
  f.ids[1] = 10;
  EXPECT_THAT(f.message(), HasSubstr("id 10 at position 1"));
}

TEST(CheckRuns, RefusesABlockTableThatDoesNotCoverTheRun) {
  Fixture f;
  f.run.start = 6;
  EXPECT_THAT(f.message(), HasSubstr("expected to cover 9"));
}

TEST(CheckRuns, RefusesBlocksOutsideThePool) {
  Fixture f;
  f.blocks[0] = 3;
  EXPECT_THAT(f.message(), HasSubstr("block 3, expected 0 .. 2"));
}

TEST(CheckRuns, RefusesTwoRunsThatWriteTheSameBlock) {
  Fixture f;
  const assay_run runs[] = {f.run, f.run};
  EXPECT_THAT(check_runs(f.config, f.cache, runs).message(), HasSubstr("written twice"));
}

TEST(CheckRuns, LongSequencesExhaustLearnedPositions) {
  Fixture f;
  f.config.positions = model::Positions::kLearnedAbsolute;
  f.config.max_position_embeddings = 2;
  EXPECT_EQ(check_runs(f.config, f.cache, {&f.run, 1}).code(), StatusCode::kExhausted);
}

TEST(CheckRuns, TopKAndTopPExcludeEachOther) {
  Fixture f;
  int32_t sampled = 0;
  f.run.output_rows = 1;
  f.run.output.sampled = &sampled;
  f.run.sampling = {1, 2, 0, 0.5, 0, 0};
  EXPECT_THAT(f.message(), HasSubstr("set one of them to 0"));
}

TEST(Options, UnknownMembersAndWrongTypesAreNamed) {
  const std::string_view known[] = {"isa", "threads"};
  EXPECT_THAT(Options::parse(R"({"isb":1})", known).status().message(), HasSubstr("'isb' is unknown"));
  EXPECT_THAT(Options::parse("[]", known).status().message(), HasSubstr("expected a JSON object"));
  auto options = Options::parse(R"({"isa":"avx2","threads":3})", known);
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(*options->text("isa", ""), "avx2");
  EXPECT_EQ(*options->number("threads", 0), 3);
  EXPECT_FALSE(options->number("isa", 0).ok());
}

}  // namespace
}  // namespace assay::backend
