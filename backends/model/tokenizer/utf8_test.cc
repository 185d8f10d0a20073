#include "backends/model/tokenizer/utf8.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay::utf8 {
namespace {

using namespace std::string_literals;  // NOLINT: literals only
using testing::HasSubstr;

TEST(Utf8, EveryScalarValueGoesThereAndBack) {
  for (char32_t c = 0; c < 0x110000; ++c) {
    if (c >= 0xD800 && c < 0xE000) continue;
    std::string text;
    append(text, c);
    const Decoded decoded = decode_at(text, 0);
    ASSERT_TRUE(decoded.well_formed) << static_cast<uint32_t>(c);
    ASSERT_EQ(static_cast<uint32_t>(decoded.code_point), static_cast<uint32_t>(c));
    ASSERT_EQ(decoded.length, text.size());
  }
}

// Expected values are those of bytes.decode("utf-8", "replace") in Python 3.11.
TEST(Utf8, IllFormedPartsAreReplacedAsPythonDoes) {
  const std::string r = "\xEF\xBF\xBD";
  EXPECT_EQ(replace_invalid("a\x80z"), "a" + r + "z");
  EXPECT_EQ(replace_invalid("\xC0\xAF"), r + r);                  // overlong
  EXPECT_EQ(replace_invalid("\xE0\x80\x80"), r + r + r);          // overlong
  EXPECT_EQ(replace_invalid("\xE2\x82"), r);                      // cut short at the end
  EXPECT_EQ(replace_invalid("\xE2\x82z"), r + "z");               // cut short within
  EXPECT_EQ(replace_invalid("\xE2\x82\xE2\x82\xAC"), r + "€");    // cut short by the next character
  EXPECT_EQ(replace_invalid("\xED\xA0\x80"), r + r + r);          // surrogate
  EXPECT_EQ(replace_invalid("\xF0\x90\x80(\x80"), r + "(" + r);   // three of four
  EXPECT_EQ(replace_invalid("\xF0\x80\x80\x80"), r + r + r + r);  // overlong
  EXPECT_EQ(replace_invalid("\xF4\x90\x80\x80"), r + r + r + r);  // above U+10FFFF
  EXPECT_EQ(replace_invalid("\xF5\xFF"), r + r);                  // never a lead byte
  EXPECT_EQ(replace_invalid("x\0y\xF4\x8F\xBF\xBF"s), "x\0y\xF4\x8F\xBF\xBF"s);
}

TEST(Utf8, ValidateNamesOffsetAndByte) {
  EXPECT_TRUE(validate("").ok());
  EXPECT_TRUE(validate("héllo 🙂").ok());
  EXPECT_THAT(validate("ab\xFFz").message(), HasSubstr("byte offset 2: byte 0xFF"));
  EXPECT_THAT(validate("é\xED\xB2\xA9").message(), HasSubstr("byte offset 2: a lone surrogate U+DCA9"));
  EXPECT_THAT(validate("\xED\xA0").message(), HasSubstr("byte offset 0: byte 0xED"));
  EXPECT_EQ(validate("\xFF").code(), StatusCode::kInvalid);
}

TEST(Utf8, SlicesCountCodePoints) {
  const std::string_view text = "aé€🙂z";
  EXPECT_EQ(count(text), 5U);
  EXPECT_EQ(count(""), 0U);
  EXPECT_EQ(offset_of(text, 0), 0U);
  EXPECT_EQ(offset_of(text, 3), 6U);
  EXPECT_EQ(offset_of(text, 5), text.size());
  EXPECT_EQ(offset_of(text, 99), text.size());
  EXPECT_EQ(slice(text, 2, 2), "€🙂");
  EXPECT_EQ(slice(text, 3), "🙂z");
  EXPECT_EQ(slice(text, 9), "");
  EXPECT_EQ(slice(text, 1, 0), "");
}

TEST(Utf8, QuoteKeepsMessagesOnOneShortLine) {
  EXPECT_EQ(quote("a\n\x7F\xFF"), "'a\\x0A\\x7F\uFFFD'");
  std::string long_text;
  for (int i = 0; i < 50; ++i) long_text += "€";
  EXPECT_EQ(count(quote(long_text)), 40U + 5U);
  EXPECT_EQ(quote(""), "''");
}

}  // namespace
}  // namespace assay::utf8
