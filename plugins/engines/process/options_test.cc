#include "plugins/engines/process/options.h"

#include <gmock/gmock.h>

namespace assay::engines {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

ProcessOptions parsed(const std::string& text) {
  const Result<ProcessOptions> options = parse_process_options(text);
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

TEST(ProcessOptionsJson, WithoutACommandTheScriptOfTheCaseIsLaunched) {
  EXPECT_THAT(parsed(R"({"case": {"script": "a.py"}})").command, ElementsAre("{launch}", "{script}", "{model_args}"));
  EXPECT_THAT(parsed(R"({"command": "x {script}", "case": {"script": "a.py"}})").command, ElementsAre("x", "{script}"));
  EXPECT_THAT(parsed(R"({"case": {"name": "a"}})").command, IsEmpty());
}

TEST(ProcessOptionsJson, TheEnvironmentIsPassedWholeInPartOrNotAtAll) {
  EXPECT_FALSE(parsed("{}").pass_environment.has_value());
  EXPECT_FALSE(parsed(R"({"pass_environment": true})").pass_environment.has_value());
  EXPECT_THAT(*parsed(R"({"pass_environment": false})").pass_environment, IsEmpty());
  EXPECT_THAT(*parsed(R"({"pass_environment": ["PATH"]})").pass_environment, ElementsAre("PATH"));
}

TEST(ProcessOptionsJson, RefusesWhatItDoesNotKnow) {
  for (const char* text :
       {R"({"comand": "a"})", R"({"command": 3})", R"({"time_limit": 0})", R"({"memory_limit": "1G"})",
        R"({"environment": {"A": 1}})", R"({"format": "xml"})", R"({"case": {"nam": "x"}})",
        R"({"launcher": "mpirun"})", R"({"torchrun": []})", "[]", "nonsense"}) {
    const Status status = parse_process_options(text).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalid) << text;
    EXPECT_THAT(status.message(), HasSubstr("options of engine process")) << text;
  }
}

// A fault of the options is no fault of the machine.
TEST(ProcessOptionsJson, RefusesWhatNoSystemCanStart) {
  const auto reason = [](const char* text) {
    const Result<ProcessOptions> options = parse_process_options(text);
    return options.ok() ? "" : options.status().message();
  };
  using testing::HasSubstr;
  EXPECT_THAT(reason(R"({"command": [""]})"), HasSubstr("command begins with an empty word"));
  EXPECT_THAT(reason(R"({"command": ["x"], "torchrun": ["", "y"]})"), HasSubstr("torchrun begins with an empty word"));
  EXPECT_THAT(reason(R"({"command": ["x", "a\u0000b"]})"), HasSubstr("a word with a NUL"));
  EXPECT_THAT(reason(R"({"command": ["x"], "environment": {"A=B": "c"}})"), HasSubstr("\"A=B\", which is no name"));
  EXPECT_THAT(reason(R"({"command": ["x"], "environment": {"": "c"}})"), HasSubstr("which is no name"));
  EXPECT_THAT(reason(R"({"command": ["x"], "environment": {"A": "b\u0000"}})"), HasSubstr("the value of A has a NUL"));
  EXPECT_THAT(reason(R"({"command": ["x"], "folder": "a\u0000"})"), HasSubstr("folder has a NUL"));
  EXPECT_EQ(reason(R"({"command": ["x", ""], "environment": {"A": "", "a.b-c": "x=y"}})"), "");
}

TEST(ProcessOptionsJson, ACommandGivenTwiceIsRefused) {
  const Result<ProcessOptions> options = parse_process_options(R"({"command": ["x"], "command": "y"})");
  ASSERT_FALSE(options.ok());
  EXPECT_THAT(options.status().message(), testing::HasSubstr("\"command\" occurs more than once"));
}

TEST(ProcessOptions, NestedTooDeepAreRefused) {
  const std::string deep = std::string(1'000'000, '[') + std::string(1'000'000, ']');
  EXPECT_THAT(parse_process_options(R"({"command": ["x"], "case": {"a": )" + deep + "}}").status().message(),
              testing::HasSubstr("nested more than 256 deep"));
}

}  // namespace
}  // namespace assay::engines
