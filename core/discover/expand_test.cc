#include "core/discover/expand.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/discover/case_reader.h"
#include "core/discover/shell_words.h"
#include "core/discover/substitute.h"

namespace assay::discover {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TestCase read(const std::string& entries) {
  TestCase test_case;
  test_case.config = "f";
  read_config("MODEL_ARGS:\n" + entries, test_case);
  EXPECT_TRUE(test_case.error.ok()) << test_case.error.message();
  return test_case;
}

// Words in brackets, or the message of the failure.
std::string words(const std::string& entries) {
  const auto made = expand_arguments(read(entries).model_args, "f");
  if (!made.ok()) return made.status().message();
  std::string out;
  for (const ArgumentWord& word : *made) out += "[" + word.text + "]";
  return out;
}

TEST(Expand, TrueIsTheFlagAlone) {
  EXPECT_EQ(words("  --a: true\n  --b: \"true\"\n  --c: True\n  --d: ' true '\n"), "[--a][--b][--c][--d]");
}

TEST(Expand, FalseNullAndNumbersAreWords) {
  EXPECT_EQ(words("  --a: false\n  --b: null\n  --c: 1e-3\n  --d: -1\n  --e: 'True'\n  --f: yes\n"),
            "[--a][false][--b][null][--c][1e-3][--d][-1][--e][True][--f][yes]");
}

TEST(Expand, QuotedEmptyValueDropsTheEntry) { EXPECT_EQ(words("  --a: ''\n  --b: 1\n"), "[--b][1]"); }

TEST(Expand, MissingValueIsAnError) { EXPECT_THAT(words("  --a:\n"), HasSubstr("MODEL_ARGS --a: there is no value")); }

TEST(Expand, BlanksMakeOneWordAndCollapse) {
  EXPECT_EQ(words("  --prompts: The capital   of France is\n"), "[--prompts][The capital of France is]");
  EXPECT_EQ(words("  --spec: pkg.mod fn\n"), "[--spec][pkg.mod fn]");
}

TEST(Expand, BracketsSplitAndParenthesesStayOneWord) {
  EXPECT_EQ(words("  --spec: [pkg.mod fn]\n"), "[--spec][pkg.mod][fn]");
  EXPECT_EQ(words("  --spec: '[pkg.mod fn]'\n"), "[--spec][pkg.mod][fn]");
  EXPECT_EQ(words("  --freq: ([0]*1+[1]*26)\n"), "[--freq][([0]*1+[1]*26)]");
  EXPECT_EQ(words("  --freq: (a b)\n"), "[--freq][(a b)]");
  EXPECT_EQ(words("  --pipe: a|b\n"), "[--pipe][a|b]");
}

TEST(Expand, AListOfSeveralItemsGivesThemAsTheyAre) {
  EXPECT_EQ(words("  --prompts: [\"It's one\", two $x]\n"), "[--prompts][It's one][two $x]");
  EXPECT_EQ(words("  --prompts:\n    - one\n    - two\n"), "[--prompts][one][two]");
}

TEST(Expand, SeveralQuotedPromptsNeedQuotesThatSurviveXargs) {
  EXPECT_EQ(words("  --prompts: '[\"one two\" \"three\"]'\n"), "[--prompts][one][two][three]");
  EXPECT_EQ(words("  --prompts: '[\\\"one two\\\" \\\"three\\\"]'\n"), "[--prompts][one two][three]");
  EXPECT_EQ(words("  --prompts: \"[\\\"'one two'\\\" \\\"'three'\\\"]\"\n"), "[--prompts][one two][three]");
}

TEST(Expand, BackslashesPassXargsThenTheShell) {
  EXPECT_EQ(words("  --p: 'a\\\\nb c'\n"), "[--p][a\\nb c]");      // two, then one
  EXPECT_EQ(words("  --p: 'a\\nb c'\n"), "[--p][anb c]");          // one, then none
  EXPECT_EQ(words("  --p: 'a \"b\\n\" c'\n"), "[--p][a b\\n c]");  // inside quotes xargs keeps it
  EXPECT_EQ(words("  --stop-words: '\"the\"'\n"), "[--stop-words][the]");
}

TEST(Expand, AnApostropheIsRefusedAsXargsDoes) {
  EXPECT_EQ(words("  --p: don't stop\n"),
            "f:2:8: MODEL_ARGS --p: unbalanced single quote (an apostrophe?): xargs fails on it; write \\' instead");
  EXPECT_EQ(words("  --p: don\\'t stop\n"), "[--p][don't stop]");
}

TEST(Expand, WhatTheShellWouldActOnIsRefused) {
  for (const char* value : {"a;b", "a&b", "a>b", "a<b", "`ls`", "x `ls`", "$(ls)", "a $(ls)", "$HOME", "a ${HOME}",
                            "costs $5", "~/x", "{a,b}", "x{1..3}", "./data/*.json", "*", "'#x'"}) {
    const std::string seen = words("  --p: \"" + std::string(value) + "\"\n");
    EXPECT_THAT(seen, HasSubstr("MODEL_ARGS --p: '")) << value;
  }
}

TEST(Expand, WhatTheShellLeavesAloneStays) {
  EXPECT_EQ(words("  --p: M-M-M-M*-M-\n"), "[--p][M-M-M-M*-M-]");
  EXPECT_EQ(words("  --p: \"a; b & c > d\"\n"), "[--p][a; b & c > d]");
  EXPECT_EQ(words("  --p: \"5 $ and 100% {x}\"\n"), "[--p][5 $ and 100% {x}]");
  EXPECT_EQ(words("  --p: 'a \\\\$5'\n"), "[--p][a $5]");
  EXPECT_EQ(words("  --p: http://host/x?y=1\n"), words("  --p: http://host/x?y=1\n"));
}

TEST(Expand, SeveralLinesAreRefusedATrailingLineEndIsNot) {
  EXPECT_THAT(words("  --p: \"a\\nb\"\n"), HasSubstr("several lines"));
  EXPECT_EQ(words("  --p: |\n    a b\n"), "[--p][a b]");
}

TEST(Expand, EchoSwallowsItsOptions) {
  EXPECT_EQ(words("  --p: '-n'\n"), "[--p]");
  EXPECT_EQ(words("  --p: '-n x'\n"), "[--p][x]");
  EXPECT_THAT(words("  --p: '-e x'\n"), HasSubstr("echo takes for an option"));
}

TEST(Substitute, SetComesBeforeTheEnvironment) {
  const Variables variables{.set = {{"A", "1"}}, .environment = {{"A", "2"}, {"B", "3"}}};
  EXPECT_EQ(*substitute("$A/${B}/x$A.y", variables, SubstitutionUse::kArgument), "1/3/x1.y");
  EXPECT_EQ(*substitute("100$ $5 ${ $$ ${A", variables, SubstitutionUse::kPlain), "100$ $5 ${ $$ ${A");
}

TEST(Substitute, ValuesAreNotSubstitutedAgain) {
  const Variables variables{.set = {{"A", "${B}"}, {"B", "x"}}, .environment = {}};
  EXPECT_EQ(*substitute("$A", variables, SubstitutionUse::kPlain), "${B}");
}

TEST(Substitute, AnUnsetVariableNamesItselfKeyPlaceAndRemedy) {
  TestCase test_case = read("  --load: ${CHECKPOINT_LOAD_PATH}/x\n");
  EXPECT_EQ(substitute_model_args(test_case, {}).message(),
            "f:2:11: MODEL_ARGS --load: variable CHECKPOINT_LOAD_PATH is not set: give it with --set "
            "CHECKPOINT_LOAD_PATH=VALUE or in the environment");
  test_case.env_vars.push_back({"HF_HOME", "${DATA_PATH}/hf", {7, 3}});
  EXPECT_THAT(substitute_env_vars(test_case, {}).message(), HasSubstr("f:7:3: ENV_VARS HF_HOME: variable DATA_PATH"));
}

TEST(Substitute, ReachesListsAndFurtherArguments) {
  TestCase test_case = read("  --a: [$X, b]\nMODEL_ARGS_2:\n  --c: $X\n");
  ASSERT_TRUE(substitute_model_args(test_case, {.set = {{"X", "v"}}, .environment = {}}).ok());
  EXPECT_THAT(test_case.model_args.entries[0].items, ElementsAre("v", "b"));
  EXPECT_EQ(test_case.further_model_args[0].entries[0].text, "v");
}

TEST(Substitute, RefusesValuesThatTheShellWouldChange) {
  for (const char* value : {"it's", "a\"b", "a\\b", "a`b", "a$b", "a\nb"}) {
    const Variables variables{.set = {{"A", value}}, .environment = {}};
    EXPECT_FALSE(substitute("$A", variables, SubstitutionUse::kArgument).ok()) << value;
    EXPECT_EQ(*substitute("$A", variables, SubstitutionUse::kPlain), value);
  }
}

TEST(Substitute, AnEscapedUnsetVariableIsLeftToTheShell) {
  EXPECT_EQ(*substitute("a \\\\$X", {}, SubstitutionUse::kArgument), "a \\\\$X");
  EXPECT_EQ(words("  --p: 'a \\\\$X'\n"), "[--p][a $X]");
}

}  // namespace
}  // namespace assay::discover
