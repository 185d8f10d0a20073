#include "backends/model/tokenizer/pre_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "backends/model/tokenizer/utf8.h"

namespace assay::model {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> pieces(const std::string& pattern, const std::string& text, const RegexLimits& limits = {}) {
  const Result<PreTokenizer> pre_tokenizer = PreTokenizer::open(pattern, limits);
  EXPECT_TRUE(pre_tokenizer.ok()) << pre_tokenizer.status().message();
  const Result<std::vector<size_t>> ends = pre_tokenizer->split(text);
  EXPECT_TRUE(ends.ok()) << ends.status().message();
  std::vector<std::string> out;
  size_t begin = 0;
  for (const size_t end : *ends) {
    out.push_back(text.substr(begin, end - begin));
    begin = end;
  }
  return out;
}

std::string random_text(std::mt19937& random, size_t code_points) {
  std::string text;
  for (size_t i = 0; i < code_points; ++i) {
    auto c = static_cast<char32_t>(random() % (random() % 2 == 0 ? 0x250 : 0x110000));
    if (c >= 0xD800 && c < 0xE000) c = ' ';
    utf8::append(text, c);
  }
  return text;
}

TEST(PreTokenizer, V2SplitsWordsAtCapitals) {
  EXPECT_THAT(pieces("v2", "CamelCase iOS"), ElementsAre("Camel", "Case", " i", "OS"));
  EXPECT_THAT(pieces("v1", "CamelCase iOS"), ElementsAre("CamelCase", " iOS"));
}

TEST(PreTokenizer, V2BacktracksIntoLettersOfBothClasses) {
  // Marks and Lo count as upper and as lower case: the first alternative gives the last of them back.
  EXPECT_THAT(pieces("v2", "ÀÉ\u0301x"), ElementsAre("ÀÉ\u0301x"));
  EXPECT_THAT(pieces("v2", "ABC中"), ElementsAre("ABC中"));
  EXPECT_THAT(pieces("v2", "ABC中文D"), ElementsAre("ABC中文", "D"));
}

TEST(PreTokenizer, V1NeverGivesALeadingMarkBack) {
  EXPECT_THAT(pieces("v1", "\u0301\u0301x"), ElementsAre("\u0301\u0301", "x"));
  EXPECT_THAT(pieces("v1", "\u0301x"), ElementsAre("\u0301x"));
}

TEST(PreTokenizer, LastBlankGoesToTheNextWord) {
  EXPECT_THAT(pieces("v2", "a   b  "), ElementsAre("a", "  ", " b", "  "));
  EXPECT_THAT(pieces("v2", "a \n \n  b"), ElementsAre("a", " \n \n", " ", " b"));
  EXPECT_THAT(pieces("v1", "\n\nx"), ElementsAre("\n\n", "x"));
  EXPECT_THAT(pieces("v2", "x./\n/y"), ElementsAre("x", "./\n/", "y"));
}

TEST(PreTokenizer, BlanksAreUnicodeWhiteSpaceAndNothingElse) {
  for (const char* blank : {"\t", "\v", "\f", "\u0085", "\u00A0", "\u1680", "\u2000", "\u200A", "\u2028", "\u2029",
                            "\u202F", "\u205F", "\u3000"}) {
    EXPECT_THAT(pieces("v2", std::string(blank) + blank + "!"), ElementsAre(blank, blank, "!")) << blank;
  }
  for (const char* other : {"\x1C", "\x1D", "\x1E", "\x1F", "\u180E", "\u200B", "\uFEFF"}) {
    EXPECT_THAT(pieces("v2", std::string(other) + other + "!"), ElementsAre(std::string(other) + other + "!")) << other;
  }
}

TEST(PreTokenizer, LettersOfUnicode16AreKnownAndThoseOf17AreNot) {
  EXPECT_THAT(pieces("v1", "!\U00010D50"), ElementsAre("!\U00010D50"));      // Garay, 16.0
  EXPECT_THAT(pieces("v1", "a\U00016EA0"), ElementsAre("a", "\U00016EA0"));  // Beria Erfe, 17.0
}

TEST(PreTokenizer, EachNumberCharStandsAlone) {
  EXPECT_THAT(pieces("v2", "12½ ٣"), ElementsAre("1", "2", "½", " ", "٣"));
}

TEST(PreTokenizer, InterpreterAgreesWithJit) {
  std::mt19937 random(3);
  for (int i = 0; i < 200; ++i) {
    const std::string text = random_text(random, 1 + random() % 200);
    for (const char* pattern : {"v1", "v2"}) {
      ASSERT_EQ(pieces(pattern, text), pieces(pattern, text, {.jit = false})) << pattern << ": " << text;
    }
  }
}

TEST(PreTokenizer, InterpreterManagesAMegabyteOfOnePiece) {
  for (const char c : {'A', 'a', ' ', '\n', '!'}) {
    const std::string text(1 << 20, c);
    EXPECT_THAT(pieces("v2", text, {.jit = false}), ElementsAre(text)) << c;
  }
}

TEST(PreTokenizer, UnknownPatternNamesTheKnownOnes) {
  const Result<PreTokenizer> pre_tokenizer = PreTokenizer::open("v3");
  ASSERT_FALSE(pre_tokenizer.ok());
  EXPECT_EQ(pre_tokenizer.status().code(), StatusCode::kUnsupported);
  EXPECT_THAT(pre_tokenizer.status().message(), HasSubstr("'v3' is not known, expected v1 or v2"));
}

TEST(Regex, FallsBackWhenTheJitStackIsTooSmall) {
  // Each round of this group keeps a frame: 32 KiB hold far fewer than 100,000.
  const std::string subject = std::string(100'000, 'a') + "b";
  for (const size_t stack : {64UL << 20, 32UL << 10}) {  // a larger stack helps; a small one leaves the interpreter
    const Result<Regex> regex = Regex::compile("(a|aa)*b", {.jit_stack_bytes = stack});
    ASSERT_TRUE(regex.ok());
    Regex::Scanner scanner(*regex, subject);
    const Result<size_t> end = scanner.match_end(0);
    ASSERT_TRUE(end.ok()) << end.status().message();
    EXPECT_EQ(*end, subject.size());
  }
}

TEST(Regex, ReportsMemoryThatNoFallbackHas) {
  const Result<Regex> regex = Regex::compile("(a|aa)*b", {.jit_stack_bytes = 32UL << 10, .interpreter_heap_kib = 100});
  ASSERT_TRUE(regex.ok());
  const std::string subject(100'000, 'a');
  Regex::Scanner scanner(*regex, subject);
  EXPECT_EQ(scanner.match_end(0).status().code(), StatusCode::kExhausted);
}

TEST(Regex, TellsNoMatchFromABrokenPattern) {
  const Result<Regex> regex = Regex::compile("b");
  ASSERT_TRUE(regex.ok());
  Regex::Scanner scanner(*regex, "ab");
  EXPECT_EQ(scanner.match_end(0).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(*scanner.match_end(1), 2U);
  EXPECT_THAT(Regex::compile("(").status().message(), HasSubstr("pattern '(': missing closing parenthesis"));
}

}  // namespace
}  // namespace assay::model
