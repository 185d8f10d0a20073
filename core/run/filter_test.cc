#include "core/run/filter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay::run {
namespace {

using ::testing::HasSubstr;

const FilterSubject kCase = {.name = "moe_10m_licences_b1",
                             .model = "moe",
                             .engine = "static_legacy",
                             .metrics = {"generated_text", "logprobs"},
                             .tags = {"quick"}};

bool selects(const std::string& text) {
  const Result<Filter> filter = Filter::parse(text);
  EXPECT_TRUE(filter.ok()) << filter.status().message();
  return filter.ok() && filter->matches(kCase);
}

std::string error_of(const std::string& text) {
  const Result<Filter> filter = Filter::parse(text);
  EXPECT_FALSE(filter.ok()) << text;
  return filter.ok() ? "" : filter.status().message();
}

TEST(Filter, BlankTextSelectsEverything) {
  EXPECT_TRUE(selects(""));
  EXPECT_TRUE(selects("  \t"));
}

TEST(Filter, BareWordIsANameGlobThatCoversTheWholeName) {
  EXPECT_TRUE(selects("moe_*"));
  EXPECT_TRUE(selects("moe_10m_licences_b?"));
  EXPECT_TRUE(selects("*_b[1-4]"));
  EXPECT_FALSE(selects("moe"));
}

TEST(Filter, NameMatchesAsAWholeOrByItsLastPart) {
  const FilterSubject nested = {.name = "moe/licences_b1", .model = "moe", .engine = "", .metrics = {}, .tags = {}};
  for (const char* glob : {"licences_*", "moe/*", "*_b1", "moe/licences_b1"}) {
    EXPECT_TRUE(Filter::parse(glob)->matches(nested)) << glob;
  }
  for (const char* glob : {"moe", "licences", "/licences_b1"})
    EXPECT_FALSE(Filter::parse(glob)->matches(nested)) << glob;
}

TEST(Filter, ModeTellsInferenceFromTraining) {
  FilterSubject subject = kCase;
  subject.mode = "inference";
  EXPECT_TRUE(Filter::parse("mode:inference")->matches(subject));
  EXPECT_FALSE(Filter::parse("mode:pretraining or mode:rl")->matches(subject));
}

TEST(Filter, ARelationMatchesByItsOwnNameAndByThatOfItsCase) {
  const FilterSubject row = {.name = "moe/licences@prefix_cache",
                             .model = "moe",
                             .engine = "",
                             .metrics = {},
                             .tags = {},
                             .relation = "prefix_cache"};
  for (const char* glob : {"*@prefix_cache", "licences", "moe/licences", "licences@prefix_cache", "*@*", "lic*"}) {
    EXPECT_TRUE(Filter::parse(glob)->matches(row)) << glob;
  }
  for (const char* glob : {"*@chunked_prefill", "moe", "prefix_cache", "not licences", "not *@*"}) {
    EXPECT_FALSE(Filter::parse(glob)->matches(row)) << glob;
  }
  const FilterSubject folder = {.name = "moe/a@b", .model = "moe", .engine = "", .metrics = {}, .tags = {}};
  EXPECT_FALSE(Filter::parse("a")->matches(folder)) << "the @ of a folder's name is no relation";
}

TEST(Filter, KeysLookAtTheirValues) {
  EXPECT_TRUE(selects("metric:logprobs"));
  EXPECT_FALSE(selects("metric:generated_tokens"));
  EXPECT_TRUE(selects("engine:static*"));
  EXPECT_TRUE(selects("tag:quick"));
  EXPECT_FALSE(selects("tag:slow"));
  EXPECT_TRUE(selects("model:moe"));
  EXPECT_TRUE(selects("name:*licences*"));
}

TEST(Filter, AndBindsTighterThanOr) {
  EXPECT_TRUE(selects("moe_* or nothing and nothing"));
  EXPECT_FALSE(selects("(moe_* or nothing) and nothing"));
}

TEST(Filter, TwoWordsInARowMeanAnd) {
  EXPECT_TRUE(selects("moe_* metric:logprobs"));
  EXPECT_FALSE(selects("moe_* metric:throughput"));
}

TEST(Filter, NotAppliesToTheNextFactorOnly) {
  EXPECT_TRUE(selects("not nothing and moe_*"));
  EXPECT_FALSE(selects("not (nothing or moe_*)"));
  EXPECT_TRUE(selects("not not moe_*"));
}

TEST(Filter, QuotedWordsAreNeverKeywords) {
  EXPECT_FALSE(selects("\"or\""));
  EXPECT_FALSE(selects("name:\"a (b) or c\""));
}

TEST(Filter, ErrorsNameTheColumn) {
  EXPECT_THAT(error_of("a and"), HasSubstr("column 6: 'the end', expected a name glob"));
  EXPECT_THAT(error_of("or b"), HasSubstr("column 1: 'or'"));
  EXPECT_THAT(error_of("a (b or c"), HasSubstr("column 3: this parenthesis is never closed"));
  EXPECT_THAT(error_of("a ) b"), HasSubstr("column 3: ')' closes nothing"));
  EXPECT_THAT(error_of("x colour:red"), HasSubstr("column 3: unknown key 'colour', expected name, metric"));
  EXPECT_THAT(error_of("a metric:"), HasSubstr("column 10: 'metric:' without a glob"));
  EXPECT_THAT(error_of("name:\"abc"), HasSubstr("column 6: this quote is never closed"));
  EXPECT_THAT(error_of("()"), HasSubstr("column 2: ')'"));
}

TEST(Filter, DeepNestingIsRefusedAndNotACrash) {
  EXPECT_THAT(error_of(std::string(100000, '(') + "a"), HasSubstr("nested deeper than"));
}

}  // namespace
}  // namespace assay::run
