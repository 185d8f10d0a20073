#include "plugins/engines/common/template_words.h"

#include <gmock/gmock.h>

namespace assay::engines {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TemplateVariables variables() {
  TemplateVariables all;
  all["output"].words = {"/tmp/a b.json"};
  all["seed"].words = {"7"};
  all["model_args"] = {.words = {"--load", "x y", ""}, .several = true};
  all["nothing"] = {.words = {}, .several = true};
  all["argv"] = {.words = {"/bin/w", "a {seed}"}, .several = true, .joined = true};
  all["script"].absent = "the case has none";
  return all;
}

std::vector<std::string> filled(const std::vector<std::string>& words) {
  const Result<std::vector<std::string>> result = fill_in(words, variables(), "command");
  EXPECT_TRUE(result.ok()) << result.status().message();
  return result ? *result : std::vector<std::string>();
}

std::string failure(const std::string& word) {
  const Status status = fill_in({"x", word}, variables(), "command").status();
  EXPECT_EQ(status.code(), StatusCode::kInvalid);
  return status.message();
}

TEST(CommandWords, VariablesStandAnywhereInAWord) {
  EXPECT_THAT(filled({"run", "{output}", "--seed={seed}", "{seed}{seed}", ""}),
              ElementsAre("run", "/tmp/a b.json", "--seed=7", "77", ""));
}

TEST(CommandWords, AVariableOfSeveralWordsBecomesThem) {
  EXPECT_THAT(filled({"a", "{model_args}", "{nothing}", "b"}), ElementsAre("a", "--load", "x y", "", "b"));
  EXPECT_THAT(failure("args={model_args}"), HasSubstr("stands for several words: let it stand alone"));
}

TEST(CommandWords, AVariableThatIsJoinedStandsInLongerWordsToo) {
  EXPECT_THAT(filled({"{argv}", "x {argv}"}), ElementsAre("/bin/w", "a {seed}", "x /bin/w a {seed}"))
      << "and values are not filled in again";
}

TEST(CommandWords, DoubledBracesAreBraces) {
  EXPECT_THAT(filled({"{{\"seed\": {seed}}}", "{{seed}}", "}}{{"}), ElementsAre("{\"seed\": 7}", "{seed}", "}{"));
}

TEST(CommandWords, MistakesNameTheWordAndWhatThereIs) {
  EXPECT_THAT(failure("--x={promts}"),
              HasSubstr("command, word '--x={promts}': there is no template variable {promts}; known: "
                        "{argv} {model_args} {nothing} {output} {script} {seed}"));
  EXPECT_THAT(failure("{outptu}"), HasSubstr("{outptu} (did you mean 'output'?)"));
  EXPECT_THAT(failure("{}"), HasSubstr("there is no template variable {}"));
  EXPECT_THAT(failure("{seed"), HasSubstr("is never closed"));
  EXPECT_THAT(failure("seed}"), HasSubstr("closes nothing"));
  EXPECT_THAT(failure("{script}"), HasSubstr("{script} has no value: the case has none"));
}

TEST(CommandWords, TellsWhetherAVariableIsNamed) {
  EXPECT_TRUE(names_variable({"a", "b{launch}"}, "launch"));
  EXPECT_FALSE(names_variable({"a", "{{launch}}"}, "launch"));
}

}  // namespace
}  // namespace assay::engines
