#include "core/golden/key_scan.h"

#include <gmock/gmock.h>

#include "core/golden/json_text.h"

namespace assay::json {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(KeyScan, FindsNamesThatOccurTwiceInOneObject) {
  EXPECT_THAT(scan_keys(R"({"a": 1, "b": [{"c": {"d": 1, "d": 1}}], "a": {"a": 2}})").twice, ElementsAre("a", "d"));
  EXPECT_THAT(scan_keys(R"({"a": 1, "\u0061": 2})").twice, ElementsAre("a")) << "however it is spelled";
  EXPECT_THAT(scan_keys(R"({"a": {"b": 1}, "c": {"b": 1}, "d": ["d", "d"]})").twice, IsEmpty());
  EXPECT_THAT(scan_keys(R"([{"a": 1}, {"a": 1}])").twice, IsEmpty());
  EXPECT_EQ(repeated_key(R"({"a": 1, "a": 1})"), "\"a\"");
  EXPECT_EQ(repeated_key(R"({"a": 1})"), "");
}

TEST(JsonText, TellsHowDeepADocumentIs) {
  EXPECT_FALSE(deeper_than("", 0));
  EXPECT_FALSE(deeper_than(R"({"a": [1, {"b": []}], "c": [[]]})", 4));
  EXPECT_TRUE(deeper_than(R"({"a": [1, {"b": []}], "c": [[]]})", 3));
  EXPECT_FALSE(deeper_than(R"(["[[[[", "\"[[[", "\\", []])", 2)) << "brackets in strings are none";
  EXPECT_TRUE(deeper_than(R"(["\\", [[]]])", 2));
  EXPECT_TRUE(deeper_than(std::string(10'000'000, '['), kDeepest)) << "however deep, valid or not";
  EXPECT_FALSE(deeper_than("]]]]}[", 1));
}

TEST(KeyScan, SaysWhereATextIsNoJson) {
  EXPECT_NE(scan_keys(R"({"a": )").error, "");
  EXPECT_NE(scan_keys("").error, "");
  EXPECT_NE(scan_keys("{} {}").error, "");
  EXPECT_EQ(scan_keys("{}").error, "");
}

}  // namespace
}  // namespace assay::json
