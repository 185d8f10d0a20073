// BEFORE_SCRIPT and AFTER_SCRIPT around commands that answer requests; around training programs: training_test.cc.
#include "plugins/engines/process/scripts.h"

#include <gmock/gmock.h>
#include <stdlib.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "plugins/engines/process/process.h"
#include "plugins/engines/toy_backend/engine_driver.h"
#include "tests/temporary_folder.h"

namespace assay::engines {
namespace {

using testing::AllOf;
using testing::HasSubstr;

namespace fs = std::filesystem;

class ScriptsAround : public testing::Test {
 protected:
  // One request to `command`, a shell script, with these facts of the case.
  Status answer(const std::string& command, const std::string& before, const std::string& after) {
    nlohmann::json facts = {{"name", "case"}, {"output", folder_.string()}};
    if (!before.empty()) facts["before_script"] = before;
    if (!after.empty()) facts["after_script"] = after;
    const nlohmann::json options = {{"command", {"sh", "-c", command}}, {"kill_grace", 0.1}, {"case", facts}};
    Result<std::unique_ptr<ProcessEngine>> engine = open_on_toy<ProcessEngine>(&model_, host_, options.dump());
    if (!engine) return engine.status();
    auto request = sdk::sized<assay_request>();
    request.text = sdk::view(std::string_view("prompt"));
    request.max_new_tokens = 1;
    if (Status submitted = (*engine)->submit(request); !submitted.ok()) return submitted;
    events_.clear();
    return (*engine)->step(&events_);
  }
  std::string file(const std::string& name) const {
    std::ifstream in(folder_ / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  const tests::TemporaryFolder temporary_;
  const fs::path& folder_ = temporary_.path();
  ToyModel model_;
  ToyHost host_{&model_};
  std::vector<EngineEvent> events_;
};

// What the command prints: a result in the form of golden files, in braces of a template.
constexpr const char* kToldResult = R"(echo '{{"0": {{"input_prompt": "prompt", "generated_text": "'"$TEXT"'"}}}}')";

TEST_F(ScriptsAround, TheFirstExportsForTheCommandAndTheSecondSeesHowItEnded) {
  ::setenv("LOG_DIR", "/nowhere/of/another/program", 1);
  const Status done =
      answer(kToldResult, "export TEXT=told",
             "echo \"$EXIT_CODE $TEXT\" > \"$LOG_DIR/after\"; test -z \"$(env | grep ASSAY_AFTER_SCRIPT)\"");
  ::unsetenv("LOG_DIR");
  ASSERT_TRUE(done.ok()) << done.message();
  ASSERT_EQ(events_.size(), 1u);
  EXPECT_THAT(file("process/stdout.txt"), HasSubstr("told"));
  EXPECT_EQ(file("process/logs/after"), "0 told\n");
  EXPECT_THAT(file("process/command.json"), HasSubstr("ASSAY_AFTER_SCRIPT")) << "what was run is noted";
}

TEST_F(ScriptsAround, TheSecondDecidesHowItEnds) {
  const Status failed = answer("echo no result; exit 4", "", "echo \"was $EXIT_CODE\" >&2; EXIT_CODE=9");
  EXPECT_EQ(failed.code(), StatusCode::kInternal);
  EXPECT_THAT(failed.message(),
              AllOf(HasSubstr("the command sh after "), HasSubstr("exit code 9"), HasSubstr("was 4")));
  const Status mended = answer(std::string("TEXT=x; ") + kToldResult + "; exit 4", "", "EXIT_CODE=0");
  EXPECT_TRUE(mended.ok()) << mended.message();
}

TEST_F(ScriptsAround, AScriptThatFailsEndsTheCommand) {
  const Status failed = answer("touch ran", "cd " + folder_.string() + "; false", "");
  EXPECT_EQ(failed.code(), StatusCode::kInternal);
  EXPECT_FALSE(fs::exists(folder_ / "ran"));
}

TEST_F(ScriptsAround, NothingChangesWithoutAScript) {
  command::CommandOptions options;
  options.argv = {"true"};
  ASSERT_TRUE(run_around({}, folder_ / "logs", &options).ok());
  EXPECT_EQ(options.argv.size(), 1u);
  EXPECT_TRUE(options.environment.empty());
  EXPECT_FALSE(fs::exists(folder_ / "logs"));
  std::ofstream(folder_ / "file") << "";
  EXPECT_EQ(run_around({.before = "true", .after = ""}, folder_ / "file/logs", &options).code(), StatusCode::kInfra);
}

}  // namespace
}  // namespace assay::engines
