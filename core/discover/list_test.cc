#include "core/discover/list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/discover/case_reader.h"
#include "core/discover/discover.h"
#include "core/discover/yaml_tree.h"

namespace assay::discover {
namespace {

using ::testing::HasSubstr;

TestCase case_of(const std::string& text) {
  TestCase test_case;
  test_case.name = "n";
  test_case.dir = "d";
  test_case.config = "f";
  read_config(text, test_case);
  return test_case;
}

TEST(List, ACaseStaysOneLineWhateverItsNameHolds) {
  TestCase hostile = case_of("MODE: inference\nMODEL_ARGS:\n  --a: 1\n");
  hostile.name = "new\nline\x1b[31m";
  const std::string text = list_text({hostile});
  EXPECT_THAT(text, HasSubstr("new\\nline\\x1b[31m"));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2) << text;
}

TEST(List, EngineFollowsTheConfig) {
  EXPECT_EQ(engine_of(case_of("MODE: inference\nMODEL_ARGS:\n  --use-legacy-static-engine: true\n")), "static_legacy");
  EXPECT_EQ(engine_of(case_of("MODE: inference\nMODEL_ARGS:\n  --a: 1\n")), "buffered");
  EXPECT_EQ(engine_of(case_of("MODE: inference\nMODEL_ARGS:\n  --a: 1\nASSAY:\n  engine: replay\n")), "replay");
  EXPECT_EQ(engine_of(case_of("MODEL_ARGS:\n  --a: 1\n")), "");
}

TEST(List, CanonicalFormIsPythonsJson) {
  const TestCase test_case =
      case_of("MODEL_ARGS:\n  --a: 1e-3\n  --b: \"x\\\"\\\\\\n\\té\\x7f\"\n  --c: [d, 'e']\n  --f:\n");
  EXPECT_EQ(canonical_model_args(test_case.model_args),
            "[[\"--a\",\"1e-3\"],[\"--b\",\"x\\\"\\\\\\n\\té\x7f\"],[\"--c\",[\"d\",\"e\"]],[\"--f\",\"\"]]");
  EXPECT_EQ(canonical_model_args(case_of("MODEL_ARGS:\n").model_args), "[]");
}

// Digests in testdata/digests.txt come from testdata/model_args_digest.py.
TEST(List, DigestsEqualThoseOfPyYaml) {
  const std::string folder = std::string(ASSAY_SOURCE_DIR) + "/core/discover/testdata";
  const auto cases = discover({folder + "/cases"});
  ASSERT_TRUE(cases.ok()) << cases.status().message();
  ASSERT_GE(cases->size(), 3u);
  std::string digests;
  for (const TestCase& test_case : *cases) {
    EXPECT_TRUE(test_case.error.ok()) << test_case.error.message();
    digests += model_args_digest(test_case.model_args) + "  " + test_case.name + "\n";
  }
  const auto expected = read_file(folder + "/digests.txt", 1 << 20);
  ASSERT_TRUE(expected.ok());
  EXPECT_EQ(digests, *expected);
}

TEST(List, JsonHasTheFieldsOfTheContract) {
  TestCase bad = case_of("MODEL_ARGS: 3\n");
  bad.name = "bad\n\xff";
  TestCase good = case_of("MODE: inference\nTEST_TYPE: frozen-start\nMODEL_ARGS:\n  --a: 1\nMETRICS:\n  - logprobs\n");
  good.goldens.push_back({"golden_values_dev_any.json", "dev", "any"});
  const auto list = nlohmann::json::parse(list_json({bad, good}));
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[0]["name"], "bad\n\xef\xbf\xbd");
  EXPECT_THAT(list[0]["error"].get<std::string>(), HasSubstr("f:1:13"));
  EXPECT_TRUE(list[0]["engine"].is_null());
  EXPECT_TRUE(list[0]["metrics"].is_null());
  EXPECT_EQ(list[1]["mode"], "inference");
  EXPECT_EQ(list[1]["test_type"], "frozen-start");
  EXPECT_EQ(list[1]["metrics"], nlohmann::json({"logprobs"}));
  EXPECT_EQ(list[1]["engine"], "buffered");
  EXPECT_EQ(list[1]["goldens"], nlohmann::json({"golden_values_dev_any.json"}));
  EXPECT_TRUE(list[1]["error"].is_null());
  EXPECT_EQ(list[1]["model_args_sha256"].get<std::string>().size(), 64u);
  EXPECT_EQ(list_json({}), "[\n]\n");
}

TEST(List, TextNamesErrorsAndTotals) {
  const std::string text = list_text({case_of("MODEL_ARGS: 3\n")});
  EXPECT_THAT(text, HasSubstr("error: f:1:13: "));
  EXPECT_THAT(text, HasSubstr("1 case, 1 with errors"));
}

}  // namespace
}  // namespace assay::discover
