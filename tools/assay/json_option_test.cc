#include "tools/assay/json_option.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

namespace assay::cli {
namespace {

TEST(JsonOption, IsAnObjectWhoseNamesOccurOnce) {
  const auto reason = [](const char* word) {
    const auto json = parse_json_option("--engine-options", word, "{}");
    return json.ok() ? "" : json.status().message();
  };
  EXPECT_EQ(reason(R"({"command": ["a"], "x": {"command": 1}})"), "");
  EXPECT_EQ(reason(R"({"command": ["a"], "command": ["b"]})"),
            "--engine-options: \"command\" occurs more than once in one object; keep one");
  EXPECT_EQ(reason(R"({"x": [{"sesame": 1, "sesame": 1}]})"),
            "--engine-options: \"sesame\" occurs more than once in one object; keep one");
  for (const char* word : {"", "[]", "{", "sesame", R"({"key": "sesame")"}) {
    EXPECT_EQ(reason(word), "--engine-options: expected a JSON object like {}") << word;
  }
}

TEST(JsonOption, IsNotNestedTooDeep) {
  const std::string deep = R"({"a": )" + std::string(1'000'000, '[') + std::string(1'000'000, ']') + "}";
  EXPECT_EQ(parse_json_option("--engine-options", deep, "{}").status().message(),
            "--engine-options: it is nested more than 256 deep");
}

}  // namespace
}  // namespace assay::cli
