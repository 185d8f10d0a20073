#include "plugins/engines/process/words.h"

#include <gmock/gmock.h>

#include "plugins/engines/process/options.h"

namespace assay::engines {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TemplateVariables variables() {
  TemplateVariables all;
  all["output"].words = {"/tmp/a b.json"};
  all["seed"].words = {"7"};
  all["model_args"] = {.words = {"--load", "x y", ""}, .several = true, .absent = ""};
  all["nothing"] = {.words = {}, .several = true, .absent = ""};
  all["script"].absent = "the case has none";
  return all;
}

std::vector<std::string> filled(const std::vector<std::string>& words) {
  const Result<std::vector<std::string>> result = fill_in(words, variables());
  EXPECT_TRUE(result.ok()) << result.status().message();
  return result ? *result : std::vector<std::string>();
}

std::string failure(const std::string& word) {
  const Status status = fill_in({"x", word}, variables()).status();
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

TEST(CommandWords, DoubledBracesAreBraces) {
  EXPECT_THAT(filled({"{{\"seed\": {seed}}}", "{{seed}}", "}}{{"}), ElementsAre("{\"seed\": 7}", "{seed}", "}{"));
}

TEST(CommandWords, MistakesNameTheWordAndWhatThereIs) {
  EXPECT_THAT(failure("--x={promts}"), HasSubstr("word '--x={promts}': there is no template variable {promts}; known: "
                                                 "{model_args} {nothing} {output} {script} {seed}"));
  EXPECT_THAT(failure("{}"), HasSubstr("there is no template variable {}"));
  EXPECT_THAT(failure("{seed"), HasSubstr("is never closed"));
  EXPECT_THAT(failure("seed}"), HasSubstr("closes nothing"));
  EXPECT_THAT(failure("{script}"), HasSubstr("{script} has no value: the case has none"));
}

TEST(CommandWords, TellsWhetherAVariableIsNamed) {
  EXPECT_TRUE(names_variable({"a", "b{launch}"}, "launch"));
  EXPECT_FALSE(names_variable({"a", "{{launch}}"}, "launch"));
}

ProcessOptions parsed(const std::string& json) {
  const Result<ProcessOptions> options = parse_process_options(json);
  EXPECT_TRUE(options.ok()) << options.status().message();
  return options ? *options : ProcessOptions();
}

TEST(ProcessOptionsJson, ACommandIsWordsOrAString) {
  EXPECT_THAT(parsed(R"({"command": ["a b", "{output}"]})").command, ElementsAre("a b", "{output}"));
  EXPECT_THAT(parsed(R"({"command": "python 'a b.py' \"{output}\" --x=1"})").command,
              ElementsAre("python", "a b.py", "{output}", "--x=1"));
  const Status piped = parse_process_options(R"({"command": "a | b"})").status();
  EXPECT_EQ(piped.code(), StatusCode::kInvalid);
  EXPECT_THAT(piped.message(), HasSubstr("split into words but run by no shell"));
}

TEST(ProcessOptionsJson, TheEnvironmentIsPassedWholeInPartOrNotAtAll) {
  EXPECT_FALSE(parsed("{}").pass_environment.has_value());
  EXPECT_FALSE(parsed(R"({"pass_environment": true})").pass_environment.has_value());
  EXPECT_THAT(*parsed(R"({"pass_environment": false})").pass_environment, IsEmpty());
  EXPECT_THAT(*parsed(R"({"pass_environment": ["PATH"]})").pass_environment, ElementsAre("PATH"));
}

TEST(ProcessOptionsJson, RefusesWhatItDoesNotKnow) {
  for (const char* json :
       {R"({"comand": "a"})", R"({"command": 3})", R"({"time_limit": 0})", R"({"memory_limit": "1G"})",
        R"({"environment": {"A": 1}})", R"({"format": "xml"})", R"({"case": {"nam": "x"}})",
        R"({"launcher": "mpirun"})", R"({"torchrun": []})", "[]", "nonsense"}) {
    const Status status = parse_process_options(json).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalid) << json;
    EXPECT_THAT(status.message(), HasSubstr("options of engine process")) << json;
  }
}

}  // namespace
}  // namespace assay::engines
