#include "core/run/foreign_case.h"

#include <gmock/gmock.h>

#include "core/discover/case_reader.h"

namespace assay::run {
namespace {

using Json = nlohmann::ordered_json;

Json member_of(const std::string& script, const ForeignLimits& limits = {}) {
  TestCase test;
  test.config = "model_config.yaml";
  discover::read_config(
      "MODE: inference\nTEST_TYPE: regular\nMODEL_ARGS:\n  model.size: 3\n  flag: true\nMETRICS: [logprobs]\n", test);
  EXPECT_TRUE(test.error.ok()) << test.error.message();
  test.assay.script = script;
  const Result<Json> member = case_member(test, {}, {}, limits);
  EXPECT_TRUE(member.ok()) << member.status().message();
  return member ? *member : Json();
}

TEST(ForeignCase, ArgumentsOfAScriptThatIsAProgramAreNamesAndValues) {
  const Json program = member_of("NeMo llm generate");
  EXPECT_EQ(program["script"], "NeMo llm generate");
  EXPECT_EQ(program["model_args"], Json::array({"model.size=3", "flag"}));
  EXPECT_EQ(member_of("run.py")["model_args"], Json::array({"model.size", "3", "flag"}));
}

TEST(ForeignCase, LimitsOfTheCaseAreTold) {
  const Json told = member_of("run.py", {.seconds = 2.5, .memory = 1000});
  EXPECT_EQ(told["time_limit_s"], 2.5);
  EXPECT_EQ(told["memory_limit"], 1000);
}

}  // namespace
}  // namespace assay::run
