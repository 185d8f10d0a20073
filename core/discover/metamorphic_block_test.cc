#include "core/discover/metamorphic_block.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/discover/case_reader.h"
#include "core/metamorphic/relation.h"

namespace assay::discover {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TestCase read_block(const std::string& value, const std::string& more = "") {
  TestCase test_case;
  test_case.config = "f";
  read_config("MODEL_ARGS:\nASSAY:\n  metamorphic: " + value + "\n" + more, test_case);
  return test_case;
}

std::string error_of(const std::string& value) { return read_block(value).error.message(); }

MetamorphicBlock block_of(const std::string& value) {
  const TestCase test_case = read_block(value);
  EXPECT_TRUE(test_case.error.ok()) << test_case.error.message();
  return test_case.assay.metamorphic.value_or(MetamorphicBlock{.relations = {"none was read"}});
}

TEST(MetamorphicBlock, AllStandsForEveryRelation) {
  for (const char* text : {"all", "\"all\"", "{relations: all}", "{batches: [2]}"}) {
    EXPECT_THAT(block_of(text).relations, IsEmpty()) << text;
    EXPECT_THAT(relations_of(block_of(text)), SizeIs(metamorphic::relation_table().size())) << text;
  }
}

TEST(MetamorphicBlock, OneOrSeveralRelationsKeepTheirOrder) {
  EXPECT_THAT(relations_of(block_of("prefix_cache")), ElementsAre("prefix_cache"));
  EXPECT_THAT(relations_of(block_of("[thread_count, prefix_cache]")), ElementsAre("thread_count", "prefix_cache"));
  EXPECT_THAT(relations_of(block_of("{relations: [save_load]}")), ElementsAre("save_load"));
}

TEST(MetamorphicBlock, ReadsEveryParameterAndLeavesTheOthersToTheirDefaults) {
  const MetamorphicBlock block =
      block_of("{batches: [1, 33], chunks: 7, threads: [4096], prompt_tokens: 600, new_tokens: 2}");
  EXPECT_THAT(block.batches, ElementsAre(1, 33));
  EXPECT_THAT(block.chunks, ElementsAre(7));
  EXPECT_THAT(block.threads, ElementsAre(4096));
  EXPECT_EQ(block.prompt_tokens, 600);
  EXPECT_EQ(block.new_tokens, 2);
  EXPECT_THAT(block_of("all").batches, IsEmpty());
  EXPECT_EQ(block_of("all").prompt_tokens, std::nullopt);
}

TEST(MetamorphicBlock, UnknownNamesAreErrorsWithTheNearestOneAndThePlace) {
  EXPECT_EQ(error_of("[solo_vs_batch, prefix-cache]"),
            "f:3:32: ASSAY.metamorphic: relation 'prefix-cache' is unknown (did you mean 'prefix_cache'?)");
  EXPECT_EQ(error_of("al"), "f:3:16: ASSAY.metamorphic: relation 'al' is unknown");
  EXPECT_EQ(error_of("{relations: thread_counts}"),
            "f:3:28: ASSAY.metamorphic.relations: relation 'thread_counts' is unknown (did you mean 'thread_count'?)");
  EXPECT_EQ(error_of("{batch: [1]}"), "f:3:24: ASSAY.metamorphic.batch is unknown (did you mean 'batches'?)");
}

TEST(MetamorphicBlock, NumbersOutOfRangeAreErrors) {
  for (const char* text :
       {"{batches: [1, 0]}", "{chunks: [4097]}", "{threads: -1}", "{batches: [1.5]}", "{chunks: [many]}",
        "{threads: [~]}", "{batches: [[1]]}", "{chunks: 99999999999999999999}"}) {
    EXPECT_THAT(error_of(text), HasSubstr("a whole number from 1 to 4096 is expected, not ")) << text;
  }
  for (const char* text : {"{prompt_tokens: 1}", "{new_tokens: 1}", "{new_tokens: [3]}", "{prompt_tokens: 0x20}"}) {
    EXPECT_THAT(error_of(text), HasSubstr("a whole number from 2 to ")) << text;
  }
  EXPECT_EQ(error_of("{batches: [1, 0]}"),
            "f:3:30: ASSAY.metamorphic.batches: a whole number from 1 to 4096 is expected, not '0'");
}

TEST(MetamorphicBlock, EmptyAndDoubledEntriesAreErrors) {
  EXPECT_THAT(error_of("[]"), HasSubstr("must be a relation or a list of at least one"));
  EXPECT_THAT(error_of("~"), HasSubstr("must be all, a list of relations, or a mapping"));
  EXPECT_THAT(error_of("{}"), HasSubstr("must be all, a list of relations, or a mapping"));
  EXPECT_THAT(error_of("\"\""), HasSubstr("the name of a relation is expected"));
  EXPECT_THAT(error_of("{relations: []}"), HasSubstr("ASSAY.metamorphic.relations must be a relation or a list"));
  EXPECT_THAT(error_of("{relations: {a: b}}"), HasSubstr("ASSAY.metamorphic.relations must be a relation or a list"));
  EXPECT_THAT(error_of("{relations: ~}"), HasSubstr("not nothing"));
  EXPECT_THAT(error_of("[[all]]"), HasSubstr("the name of a relation is expected, not a list"));
  EXPECT_THAT(error_of("{chunks: []}"), HasSubstr("ASSAY.metamorphic.chunks must be a number or a list"));
  EXPECT_THAT(error_of("{batches: {a: 1}}"), HasSubstr("ASSAY.metamorphic.batches must be a number or a list"));
  EXPECT_THAT(error_of("{batches: [2, 2]}"), HasSubstr("names 2 twice"));
  EXPECT_THAT(error_of("[save_load, save_load]"), HasSubstr("names save_load twice"));
  EXPECT_THAT(error_of("[all, save_load]"), HasSubstr("'all' stands alone"));
}

TEST(MetamorphicBlock, ExcludesAGolden) {
  EXPECT_THAT(read_block("all", "  golden: characteristic\n").error.message(),
              HasSubstr("f:4:11: ASSAY.golden and ASSAY.metamorphic exclude each other"));
}

TEST(MetamorphicBlock, WaiversNameTheSameRelations) {
  const auto waiver = [](const std::string& relations) {
    return read_block(
        "all", "  waivers:\n    - {reason: a, owner: b, issue: c, expires: 2027-01-31, verdicts: [DRIFT], relations: " +
                   relations + "}\n");
  };
  EXPECT_THAT(waiver("[save_load, prefix_cache]").assay.waivers.at(0).relations,
              ElementsAre("save_load", "prefix_cache"));
  EXPECT_THAT(waiver("save_laod").error.message(),
              HasSubstr("ASSAY.waivers[0].relations: relation 'save_laod' is unknown (did you mean 'save_load'?)"));
}

}  // namespace
}  // namespace assay::discover
