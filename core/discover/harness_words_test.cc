// The table that tools/megatron/check_words.py wrote: what Megatron-LM's own script made of each config.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "core/discover/case_reader.h"
#include "core/discover/harness_args.h"

namespace assay::discover {
namespace {

using Json = nlohmann::json;

Variables variables() {
  return {.set = {{"RUN", "7"}, {"EMPTY", ""}, {"FLAG", "true"}, {"LIST", "[p, 'q r']"}, {"HASH", "v # w"}},
          .environment = {}};
}

TEST(HarnessWords, AreThoseOfTheScriptsOrARefusal) {
  std::ifstream file(ASSAY_SOURCE_DIR "/core/discover/testdata/harness_words.json");
  const Json table = Json::parse(file);
  ASSERT_GT(table.size(), 300U);
  size_t equal = 0;
  for (const Json& row : table) {
    TestCase test_case;
    test_case.config = "f";
    read_config(row["config"], test_case);
    const auto words = test_case.error.ok() ? harness_words(test_case, variables(), 1, row["nemo"])
                                            : Result<std::vector<std::string>>(test_case.error);
    if (row["words"].is_null()) {  // the script fails, or the shell acts
      EXPECT_FALSE(words.ok()) << row["value"];
      continue;
    }
    ASSERT_TRUE(words.ok()) << row["value"] << ": " << words.status().message();
    EXPECT_EQ(Json(*words), row["words"]) << row["value"];
    ++equal;
  }
  EXPECT_GT(equal, 250U);
}

}  // namespace
}  // namespace assay::discover
