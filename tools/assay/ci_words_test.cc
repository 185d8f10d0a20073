#include "tools/assay/ci_words.h"

#include <gmock/gmock.h>

namespace assay::cli {
namespace {

using testing::HasSubstr;
const std::map<std::string, std::string> kEnvironment = {{"HOME", "/home/me"}, {"ODD", "a;b  'c'"}};

std::string value(const std::string& text) {
  const auto words = parse_ci_words({"BEFORE=earlier", "A=" + text}, kEnvironment);
  return words.ok() ? words->at("A") : "refused: " + words.status().message();
}

// Each expectation is what bash prints for `A=...; export A="$(eval echo $A)"` behind the quotes' removal.
TEST(CiWords, AreReadAsTheScriptsShellReadsThem) {
  EXPECT_EQ(value(""), "");
  EXPECT_EQ(value("/plain/path-1.json"), "/plain/path-1.json");
  EXPECT_EQ(value("$HOME/x ${BEFORE}s $UNSET."), "/home/me/x earliers .");
  EXPECT_EQ(value("\"$HOME\""), "/home/me");
  EXPECT_EQ(value("a   b\t c"), "a b c");
  EXPECT_EQ(value("\\$HOME"), "$HOME");
  EXPECT_EQ(value("'a b'"), "a b");
  EXPECT_EQ(value("x'$HOME'y"), "x$HOMEy");
  EXPECT_EQ(value("x\"$HOME\"y"), "x/home/mey");
  EXPECT_EQ(value("a\\;b"), "a;b");
  EXPECT_EQ(value("x'a|b'y"), "xa|by");
  EXPECT_EQ(value("it\\'s"), "it's");
  EXPECT_EQ(value("a\\\\b"), "a\\b");
  EXPECT_EQ(value("a=b==c"), "a=b==c");
  EXPECT_EQ(value("x~ 5$ a{b}"), "x~ 5$ a{b}");
  EXPECT_EQ(value("$ODD"), "a;b 'c'") << "a value is not read again";
}

TEST(CiWords, WhatTheScriptsShellWouldActOnIsRefused) {
  for (const char* text : {"${X:-x}",  "${HOME",
                           "${#HOME}", "$(ls)",
                           "`ls`",     "a`ls`",
                           "$((1+1))", "$1",
                           "$$",       "~",
                           "~/x",      "a;b",
                           "a|b",      "a>b",
                           "a<b",      "a&b",
                           "(a)",      "it's",
                           "say \"hi", "a\\",
                           "/x/*",     "*",
                           "{a,b}",    "#x",
                           "a #b",     "\"x\"$(ls)\"y\"",
                           "-n x",     "-e"}) {
    EXPECT_THAT(value(text), HasSubstr("refused: A: ")) << text;
  }
  EXPECT_THAT(value("a;b"), HasSubstr("';' would end the command of the shell"));
  EXPECT_THAT(value("a;b"), HasSubstr("lets a shell read each value once more"));
}

TEST(CiWords, ThoseOfTheEnvironmentCountWhereTheWordsDoNotSay) {
  const std::map<std::string, std::string> environment = {
      {"OUTPUT_PATH", "/out"}, {"DATA_PATH", ""}, {"N_REPEAT", "3"}, {"TENSORBOARD_PATH", "/tb"}, {"HOME", "/home/me"}};
  const std::map<std::string, std::string> expected = {{"OUTPUT_PATH", "/out"}, {"N_REPEAT", "3"}};
  EXPECT_EQ(inherited_ci_words({{"TENSORBOARD_PATH", "/other"}}, environment), expected);
}

TEST(CiWords, AKeyIsANameThatComesOnce) {
  const auto reason = [](const Words& words) { return parse_ci_words(words, {}).status().message(); };
  EXPECT_EQ(reason({"A=1", "B=2", "A=1"}), "A is given twice; keep one");
  EXPECT_THAT(reason({"A"}), HasSubstr("expected KEY=VALUE"));
  EXPECT_THAT(reason({"1A=x"}), HasSubstr("expected KEY=VALUE"));
  EXPECT_EQ(parse_ci_words({"A=1", "B=$A$A"}, {})->at("B"), "11");
}

}  // namespace
}  // namespace assay::cli
