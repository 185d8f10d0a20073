#include "core/compat/py_json.h"

#include <gtest/gtest.h>

#include <cmath>

namespace assay::compat {
namespace {

Value load(std::string_view text) { return load_json(decode_utf8(text)); }

// The class of the exception; "" when there was none.
std::string refusal(std::string_view text) {
  try {
    load(text);
    return "";
  } catch (const PyError& error) {
    return error.kind;
  }
}

TEST(PyJson, ReadsWhatPythonReadsBeyondTheStandard) {
  EXPECT_TRUE(std::isnan(load("NaN").number));
  EXPECT_EQ(load(" [Infinity, -Infinity] ").items[1].number, -HUGE_VAL);
  EXPECT_EQ(load("1e999").number, HUGE_VAL);
  EXPECT_EQ(load("123456789012345678901234567890").digits, "123456789012345678901234567890");
  EXPECT_EQ(load("{\"a\": 1, \"b\": 2, \"a\": 3}").find(U"a")->integer, 3);
  EXPECT_EQ(load("\"\\ud83d\\ude00\\ud83d\"").text, U"\U0001F600\xD83D");
}

TEST(PyJson, RefusesWhatPythonRefuses) {
  for (const char* text : {"", "nan", "+1", "01", "1.", ".5", "-", "[1,]", "{\"a\":1,}", "{a:1}", "\"\t\"", "\"\\x\"",
                           "\"\\u12g4\"", "[1] 2", "\"a", "tru", "\xEF\xBB\xBF{}"}) {
    EXPECT_EQ(refusal(text), "JSONDecodeError") << text;
  }
  EXPECT_EQ(refusal("\"\xED\xA0\x80\""), "UnicodeDecodeError");
  EXPECT_EQ(refusal(std::string(5000, '1')), "ValueError");
  EXPECT_EQ(refusal(std::string(100'000, '[')), "RecursionError");
}

TEST(PyJson, KeysOfLargeObjectsStayUnique) {
  std::string text = "{";
  for (int i = 0; i < 200; ++i) text += "\"k" + std::to_string(i % 100) + "\": " + std::to_string(i) + ",";
  text.back() = '}';
  const Value value = load(text);
  ASSERT_EQ(value.members.size(), 100U);
  EXPECT_EQ(value.find(U"k7")->integer, 107);
}

TEST(PyValue, ComparesIntegersAndFloatsExactly) {
  EXPECT_EQ(compare(load("9007199254740993"), load("9007199254740992.0")), Order::kGreater);
  EXPECT_EQ(compare(load("100000000000000000000"), load("1e20")), Order::kEqual);
  EXPECT_EQ(compare(load("true"), load("1.0")), Order::kEqual);
  EXPECT_EQ(compare(load("NaN"), load("1")), Order::kUnordered);
}

TEST(PyValue, ANanEqualsItselfInsideAListOnly) {
  EXPECT_TRUE(equal(load("[NaN]"), load("[NaN]")));
  EXPECT_FALSE(equal(load("NaN"), load("NaN")));
}

}  // namespace
}  // namespace assay::compat
