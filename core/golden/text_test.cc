#include "core/golden/text.h"

#include <gtest/gtest.h>

#include <cmath>

namespace assay::text {
namespace {

TEST(Text, CountsCodePointsNotBytes) {
  EXPECT_EQ(count("a\u201cb\u20ac\U0001F600"), 5U);
  EXPECT_EQ(offset_of("a\u201cb", 2), 4U);
  EXPECT_EQ(offset_of("abc", 9), 3U);
  EXPECT_EQ(prefix("\u00e9\u00e8x", 2), "\u00e9\u00e8");
}

TEST(Text, IllFormedBytesCountAsOneCodePointEach) {
  EXPECT_EQ(count("a\xff\xfe"), 3U);
  EXPECT_EQ(count("\xe2\x80"), 2U);          // truncated
  EXPECT_EQ(count("\xc0\xaf"), 2U);          // overlong
  EXPECT_EQ(count("\xed\xa0\x80"), 3U);      // surrogate
  EXPECT_EQ(count("\xf4\x90\x80\x80"), 4U);  // above U+10FFFF
}

TEST(Text, ACommonPrefixNeverEndsInsideACodePoint) {
  EXPECT_EQ(common_prefix("abc", "abd"), 2U);
  EXPECT_EQ(common_prefix("a\u00e9", "a\u00e8"), 1U);        // c3 a9, c3 a8
  EXPECT_EQ(common_prefix("\U0001F600", "\U0001F601"), 0U);  // differ in the last of four bytes
  EXPECT_EQ(common_prefix("a\u201c", "a\xe2\x80"), 1U);      // one side is cut
  EXPECT_EQ(common_prefix("abc", "abc"), 3U);
  EXPECT_EQ(common_prefix("abc", "ab"), 2U);
}

TEST(Text, TheFirstBlankLineFollowsSomeInk) {
  EXPECT_EQ(first_blank_line("ab\n\ncd\n\n"), 2U);
  EXPECT_EQ(first_blank_line("\n\nab\n\ncd"), 4U);
  EXPECT_EQ(first_blank_line("ab\ncd"), 5U);
  EXPECT_EQ(first_blank_line("\n\n \n\n"), 5U);
  EXPECT_EQ(first_blank_line(""), 0U);
}

TEST(Text, PrintableIsOneLine) {
  EXPECT_EQ(printable("a\n\t\r\x01\xff\u00e9\u2028"), "a\\n\\t\\r\\x01\\xff\u00e9\\xe2\\x80\\xa8");
  EXPECT_EQ(quoted("\u00e9\u00e9\u00e9", 2), "\"\u00e9\u00e9...\"");
  EXPECT_EQ(quoted("ab", 2), "\"ab\"");
}

TEST(Text, WhatCannotBeSeenIsSpelledOut) { EXPECT_EQ(printable("a\u202eb\u200bc\ufeff"), "a\\u202eb\\u200bc\\ufeff"); }

TEST(Text, WhatShowsNothingIsBlank) {
  for (const char* nothing : {"", " \t\r\n", "\u3000", "\u200b\u00a0", "\u2800", "\x01", "\xff"})
    EXPECT_TRUE(blank(nothing));
  for (const char* something : {"x", "\u3000.", "\u65e5"}) EXPECT_FALSE(blank(something));
}

TEST(Text, SurroundingsAreCutAtCodePoints) {
  EXPECT_EQ(around("abc\u00e9def", 3, 2, 2), "\"...bc|\u00e9d...\"");
  EXPECT_EQ(around("abc", 3, 10, 10), "\"abc|\"");
  EXPECT_EQ(around("\u00e9\u00e9\u00e9", 4, 1, 9), "\"...\u00e9|\u00e9\"");
}

TEST(Text, NumbersAreSpelledAsPythonDoes) {
  EXPECT_EQ(python_repr(1e16), "1e+16");
  EXPECT_EQ(python_repr(1e15), "1000000000000000.0");
  EXPECT_EQ(python_repr(123456789012345680.0), "1.2345678901234568e+17");
  EXPECT_EQ(python_repr(0.0001), "0.0001");
  EXPECT_EQ(python_repr(0.00001), "1e-05");
  EXPECT_EQ(python_repr(-0.0), "-0.0");
  EXPECT_EQ(python_repr(1.7976931348623157e308), "1.7976931348623157e+308");
  EXPECT_EQ(python_repr(5e-324), "5e-324");
  EXPECT_EQ(python_repr(-INFINITY), "-inf");
  EXPECT_EQ(python_repr(NAN), "nan");
}

}  // namespace
}  // namespace assay::text
