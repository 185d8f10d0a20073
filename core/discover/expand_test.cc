#include "core/discover/expand.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/discover/case_reader.h"
#include "core/discover/harness_args.h"
#include "core/discover/shell_words.h"
#include "core/discover/substitute.h"

namespace assay::discover {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TestCase case_with(const std::string& entries) {
  TestCase test_case;
  test_case.config = "f";
  read_config("MODEL_ARGS:\n" + entries, test_case);
  EXPECT_TRUE(test_case.error.ok()) << test_case.error.message();
  return test_case;
}

// Words in brackets, or the message of the failure.
std::string words(const std::string& entries, const Variables& variables = {}, bool nemo = false) {
  const auto made = harness_words(case_with(entries), variables, 1, nemo);
  if (!made.ok()) return made.status().message();
  std::string out;
  for (const std::string& word : *made) out += "[" + word + "]";
  return out;
}

TEST(Expand, TrueIsTheFlagAlone) {
  EXPECT_EQ(words("  --a: true\n  --b: \"true\"\n  --d: ' true '\n  --c: True\n"), "[--a][--b][--d][--c][True]");
}

TEST(Expand, FalseNullAndNumbersAreWords) {
  EXPECT_EQ(words("  --a: false\n  --b: null\n  --c: 1e-3\n  --d: -1\n  --e: 'True'\n  --f: yes\n"),
            "[--a][false][--b][null][--c][1e-3][--d][-1][--e][True][--f][yes]");
}

TEST(Expand, QuotedEmptyValueDropsTheEntryAMissingOneLeavesTheKey) {
  EXPECT_EQ(words("  --a: ''\n  --b:\n  --c: 1\n"), "[--b][--c][1]");
}

TEST(Expand, BlanksMakeOneWordAndCollapse) {
  EXPECT_EQ(words("  --prompts: The capital   of France is\n"), "[--prompts][The capital of France is]");
  EXPECT_EQ(words("  --spec: pkg.mod fn\n"), "[--spec][pkg.mod fn]");
}

TEST(Expand, BracketsSplitAndParenthesesStayOneWord) {
  EXPECT_EQ(words("  --spec: [pkg.mod fn]\n"), "[--spec][pkg.mod][fn]");
  EXPECT_EQ(words("  --spec: '[pkg.mod fn]'\n"), "[--spec][pkg.mod][fn]");
  EXPECT_EQ(words("  --freq: ([0]*1+[1]*26)\n"), "[--freq][([0]*1+[1]*26)]");
}

TEST(Expand, AListKeepsItsCommasAndABlockListIsReadLineByLine) {
  EXPECT_EQ(words("  --a: [x, 'y z']\n"), "[--a][x,][y][z]");
  EXPECT_EQ(words("  --a:\n  - x\n  - y z\n"), "[--a][- x][-][y][z][- y z]");
}

TEST(Expand, LinesAreEntriesOfTheirOwn) {
  EXPECT_EQ(words("  --p: \"a\\nb\"\n"), "[--p][a][b][b]");
  EXPECT_EQ(words("  --p: |\n    a b\n"), "[--p][a b]");
}

TEST(Expand, RepeatedKeysAreBothThereUnlessAMergeTidiesThem) {
  EXPECT_EQ(words("  --a: 1\n  --b: 2\n  --a: 3\n"), "[--a][1][--b][2][--a][3]");
  TestCase merged = case_with("  --a: 1\n");
  merged.config_text = "B: &m {--a: 5, --b: 6}\nMODEL_ARGS:\n  --a: 1\n  <<: *m\n  --b: 2\n  --b: 3\n";
  EXPECT_THAT(*harness_words(merged, {}), ElementsAre("--a", "5", "--b", "3"));
}

TEST(Expand, XargsUnquotesBeforeTheShell) {
  EXPECT_EQ(words("  --p: 'a \\\\n b'\n"), "[--p][a \\n b]");  // two backslashes of the file leave one
  EXPECT_EQ(words("  --p: 'a \\n b'\n"), "[--p][a n b]");
  EXPECT_EQ(words("  --p: 'a \"b\\n\" c'\n"), "[--p][a b\\n c]");  // inside quotes xargs keeps it
  EXPECT_EQ(words("  --stop-words: '\"the\"'\n"), "[--stop-words][the]");
}

TEST(Expand, AnApostropheIsRefusedAsXargsDoes) {
  EXPECT_EQ(words("  --p: don't stop\n"),
            "f:2:8: MODEL_ARGS --p: unbalanced single quote (an apostrophe?): xargs fails on it; write \\' instead");
  EXPECT_EQ(words("  --p: don\\'t stop\n"), "[--p][don't stop]");
}

TEST(Expand, WhatTheShellWouldActOnIsRefused) {
  for (const char* value : {"a;b", "a&b", "a>b", "a<b", "`ls`", "x `ls`", "$(ls)", "a $(ls)", "costs $5", "~/x",
                            "{a,b}", "x{1..3}", "./data/*.json", "*", "'#x'", "$1"}) {
    const std::string seen = words("  --p: \"" + std::string(value) + "\"\n");
    EXPECT_THAT(seen, HasSubstr("MODEL_ARGS --p: '")) << value;
  }
}

TEST(Expand, WhatTheShellLeavesAloneStays) {
  EXPECT_EQ(words("  --p: M-M-M-M*-M-\n"), "[--p][M-M-M-M*-M-]");
  EXPECT_EQ(words("  --p: \"a; b & c > d\"\n"), "[--p][a; b & c > d]");
  EXPECT_EQ(words("  --p: \"5 $ and 100% {x}\"\n"), "[--p][5 $ and 100% {x}]");
  EXPECT_EQ(words("  --p: 'a \\\\$5'\n"), "[--p][a $5]");
}

TEST(Expand, EchoSwallowsItsOptions) {
  EXPECT_EQ(words("  --p: '-n'\n"), "[--p]");
  EXPECT_EQ(words("  --p: '-n x'\n"), "[--p][x]");
  EXPECT_THAT(words("  --p: '-e x'\n"), HasSubstr("echo takes for an option"));
}

TEST(Expand, NemoScriptsTakeKeyEqualsValue) {
  const std::string entries = "  a.b: 1e-3\n  flag: true\n  text: one two\n  none: ''\n  list: '[1,2]'\n";
  EXPECT_EQ(words(entries, {}, true), "[a.b=1e-3][flag][text=one two][list=[1,2]]");
}

TEST(Substitute, SetComesBeforeTheEnvironment) {
  const Variables variables{.set = {{"A", "1"}}, .environment = {{"A", "2"}, {"B", "3"}}};
  EXPECT_EQ(*substitute("$A/${B}/x$A.y", variables), "1/3/x1.y");
  EXPECT_EQ(*substitute("100$ $5 ${ $$ ${A", variables), "100$ $5 ${ $$ ${A");
}

TEST(Substitute, ValuesAreNotSubstitutedAgain) {
  const Variables variables{.set = {{"A", "${B}"}, {"B", "x"}}, .environment = {}};
  EXPECT_EQ(*substitute("$A", variables), "${B}");
}

TEST(Substitute, AnUnsetVariableNamesItselfKeyPlaceAndRemedy) {
  TestCase test_case = case_with("  --load: ${CHECKPOINT_LOAD_PATH}/x\n");
  EXPECT_EQ(harness_args(test_case, {}).status().message(),
            "f:2:11: MODEL_ARGS --load: variable CHECKPOINT_LOAD_PATH is not set: give it with --set "
            "CHECKPOINT_LOAD_PATH=VALUE or in the environment");
  test_case.env_vars.push_back({"HF_HOME", "${DATA_PATH}/hf", {7, 3}});
  EXPECT_THAT(substitute_env_vars(test_case, {}).message(), HasSubstr("f:7:3: ENV_VARS HF_HOME: variable DATA_PATH"));
}

TEST(Substitute, ComesBeforeYamlIsRead) {
  const Variables variables{.set = {{"T", "true"}, {"L", "[a, 'b c']"}, {"C", "x # y"}, {"Q", "it's"}},
                            .environment = {}};
  EXPECT_EQ(words("  --a: $T\n  --b: ${L}\n  --c: $C\n", variables), "[--a][--b][a,][b][c][--c][x]");
  EXPECT_THAT(words("  --a: $Q\n", variables), HasSubstr("unbalanced single quote"));
  EXPECT_THAT(words("  --a: '$Q'\n", variables), HasSubstr("f:"));
  EXPECT_EQ(words("  --$T: 1\n", variables), "[--true][1]");
}

TEST(Substitute, ReachesFurtherArguments) {
  const TestCase test_case = case_with("  --a: [$X, b]\nMODEL_ARGS_2:\n  --c: $X\n");
  const Variables variables{.set = {{"X", "v"}}, .environment = {}};
  EXPECT_THAT(*harness_words(test_case, variables, 2), ElementsAre("--c", "v"));
  EXPECT_THAT(*harness_words(test_case, variables, 3), ElementsAre("--a", "v,", "b"));
}

TEST(Substitute, AnEscapedUnsetVariableIsLeftToTheShell) { EXPECT_EQ(words("  --p: 'a \\\\$X'\n"), "[--p][a $X]"); }

TEST(Substitute, WhatIsShownKeepsUnsetVariables) {
  std::vector<std::string> unset;
  const auto shown = words_to_show(case_with("  --load: ${P}/x\n  --q: [$R]\n"), {}, 1, false, &unset);
  ASSERT_TRUE(shown.ok()) << shown.status().message();
  EXPECT_EQ((*shown)[1].text, "${P}/x");
  EXPECT_EQ((*shown)[3].text, "${R}");
  EXPECT_THAT(unset, ElementsAre("P", "R"));
}

}  // namespace
}  // namespace assay::discover
