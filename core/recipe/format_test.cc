#include "core/recipe/format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay::recipe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const Value& values() {
  static const Value kValues = Value::parse(
      R"({"a": "word", "n": 42, "m": -7, "t": true, "f": 1.5, "none": null, "list": ["x", 3], "map": {"k": "v"},
          "u": "naïve ✓", "w": 6, "big": 1234567})");
  return kValues;
}

Result<std::string> format(std::string_view text) {
  return python_format(text, [](std::string_view name) -> const Value* {
    const auto found = values().find(std::string(name));
    return found == values().end() ? nullptr : &*found;
  });
}

struct Pair {
  const char* text;
  const char* expected;  // what Python 3.11 gives
};

class FormatsAsPython : public testing::TestWithParam<Pair> {};

TEST_P(FormatsAsPython, GivesTheSameText) {
  const auto made = format(GetParam().text);
  ASSERT_TRUE(made) << GetParam().text << ": " << made.status().message();
  EXPECT_EQ(*made, GetParam().expected) << GetParam().text;
}

INSTANTIATE_TEST_SUITE_P(Fields, FormatsAsPython,
                         testing::Values(Pair{"", ""}, Pair{"{a}-{n}", "word-42"}, Pair{"${{HOME:-}}", "${HOME:-}"},
                                         Pair{"{{{a}}}", "{word}"}, Pair{"{{{{", "{{"}, Pair{"}}", "}"},
                                         Pair{"{t} {none} {f}", "True None 1.5"},
                                         Pair{"{list} {map}", "['x', 3] {'k': 'v'}"},
                                         Pair{"{list[0]} {map[k]} {list[1]:03d}", "x v 003"},
                                         Pair{"{a!r} {u!a} {n!s:>5}", "'word' 'na\\xefve \\u2713'    42"}));
INSTANTIATE_TEST_SUITE_P(
    Specs, FormatsAsPython,
    testing::Values(Pair{"[{a:8}]", "[word    ]"}, Pair{"[{a:>8}]", "[    word]"}, Pair{"[{a:*^9.2}]", "[***wo****]"},
                    Pair{"[{a:{w}}]", "[word  ]"}, Pair{"[{a:✓<6}]", "[word✓✓]"}, Pair{"[{u:.3}]", "[naï]"},
                    Pair{"[{a:06}]", "[word00]"}, Pair{"{n:5}", "   42"}, Pair{"{n:<5}|", "42   |"},
                    Pair{"{n:05d}", "00042"}, Pair{"{m:05}", "-0007"}, Pair{"{n:+}", "+42"}, Pair{"{n: d}", " 42"},
                    Pair{"{n:#x} {n:X} {n:b} {n:#o}", "0x2a 2A 101010 0o52"}, Pair{"{m:#06x}", "-0x007"},
                    Pair{"{big:,} {big:_x}", "1,234,567 12_d687"}, Pair{"{t:d} {t:>3}", "1   1"},
                    Pair{"{n:*=6}", "****42"}, Pair{"{m:=6}", "-    7"}));

TEST(Format, WhatPythonRaisesIsOneLineThatNamesTheField) {
  for (const auto& [text, part] :
       std::vector<std::pair<const char*, const char*>>{{"{unknown}", "no 'unknown'"},
                                                        {"x}", "single '}'"},
                                                        {"x{", "single '{'"},
                                                        {"{a", "without its '}'"},
                                                        {"{}", "numbered"},
                                                        {"{0}", "numbered"},
                                                        {"{a!x}", "conversion 'x'"},
                                                        {"{a!r", "without its"},
                                                        {"{a!rx}", "':' is expected"},
                                                        {"{a:d}", "its type is not s"},
                                                        {"{n:s}", "type is not"},
                                                        {"{n:.2}", "precision"},
                                                        {"{none:5}", "NoneType"},
                                                        {"{list[9]}", "no item"},
                                                        {"{map[q]}", "no item"},
                                                        {"{list[0}", "without its"},
                                                        {"{a.upper}", "attributes"},
                                                        {"{f:.2f}", "float"},
                                                        {"{a:99999999999999999999}", "width"},
                                                        {"{a:{n:{w}}}", "nested too deeply"},
                                                        {"{big:015,}", "zeros"},
                                                        {"{a{n}}", "unexpected"},
                                                        {"{map[k]x}", "may follow"}}) {
    const auto made = format(text);
    ASSERT_FALSE(made) << text << " -> " << *made;
    EXPECT_THAT(made.status().message(), HasSubstr(part)) << text;
    EXPECT_EQ(made.status().message().find('\n'), std::string::npos);
  }
}

TEST(Format, ATextThatGrowsWithoutBoundIsRefused) {
  const Value large = std::string(1u << 20, 'x');
  std::string text;
  for (int i = 0; i < 100; ++i) text += "{a}";
  const auto made = python_format(text, [&](std::string_view) { return &large; });
  ASSERT_FALSE(made);
  EXPECT_THAT(made.status().message(), HasSubstr("longer than"));
}

TEST(Format, FieldsOfATemplateAreNamedInOrder) {
  EXPECT_THAT(format_fields("{a}{{b}}{c[0]:>{d}}{e!r}"), ElementsAre("a", "c", "d", "e"));
}

}  // namespace
}  // namespace assay::recipe
