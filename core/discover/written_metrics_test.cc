#include "core/discover/written_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <regex>

#include "core/discover/case_reader.h"

namespace assay::discover {
namespace {

using Form = CompatMetrics::Form;

Form form_of(const std::string& text) {
  YamlNode node;
  node.text = text;
  return written_metrics(node).form;
}

// PyYAML's patterns as they are written there; for short texts, std::regex being recursive.
bool is_text_by_pattern(const std::string& text) {
  static const std::regex kInteger(
      "[-+]?0b[01_]+|[-+]?0[0-7_]+|[-+]?(0|[1-9][0-9_]*)|[-+]?0x[0-9a-fA-F_]+|[-+]?[1-9][0-9_]*(:[0-5]?[0-9])+");
  static const std::regex kReal(
      "[-+]?[0-9][0-9_]*\\.[0-9_]*([eE][-+][0-9]+)?|\\.[0-9][0-9_]*([eE][-+][0-9]+)?|"
      "[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+\\.[0-9_]*|[-+]?\\.(inf|Inf|INF)|\\.(nan|NaN|NAN)");
  static const std::regex kDate(
      "[0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{4}-[0-9][0-9]?-[0-9][0-9]?([Tt]|[ \\t]+)[0-9][0-9]?:[0-9]{2}:[0-9]{2}"
      "(\\.[0-9]*)?([ \\t]*(Z|[-+][0-9][0-9]?(:[0-9]{2})?))?");
  return !std::regex_match(text, kInteger) && !std::regex_match(text, kReal) && !std::regex_match(text, kDate);
}

TEST(WrittenMetrics, NumbersAndDatesAreThoseOfPyYamlsPatterns) {
  const std::vector<std::string> pieces = {"0", "1", "6",   "59", "60", "12", "2020", "007", "8", "_",  "+", "-",
                                           ".", ":", "0b1", "0x", "f",  "e",  "E+",   "T",   "t", " ",  "Z", ".inf",
                                           "n", "a", "-01", "-1", ":0", ":5", ":59",  ":60", "x", "\t", "",  ".NaN"};
  const std::vector<std::string> starts = {"", "2020-01-02", "2020-1-2 ", "2020-01-02T10:11:12", "1_0:59", "1.5", "0"};
  std::mt19937 random(7);
  size_t texts = 0;
  constexpr size_t kTried = 20000;
  for (size_t i = 0; i < kTried; ++i) {
    std::string text = starts[random() % starts.size()];
    for (size_t k = random() % 6; k > 0; --k) text += pieces[random() % pieces.size()];
    if (text.empty()) continue;
    const bool is_text = form_of(text) == Form::kText;
    EXPECT_EQ(is_text, is_text_by_pattern(text)) << "'" << text << "'";
    if (is_text) ++texts;
  }
  EXPECT_GT(texts, kTried / 10);
  EXPECT_LT(texts, kTried * 9 / 10);
}

// Longer than any stack has frames for: reading may not recurse for each character.
TEST(WrittenMetrics, AScalarMayBeAsLongAsTheFile) {
  constexpr size_t kLong = 3'000'000;
  const std::string ones(kLong, '1');
  const std::string blanks(kLong, ' ');
  for (const auto& [text, form] :
       std::vector<std::pair<std::string, Form>>{{ones, Form::kScalar},
                                                 {std::string(kLong, '0'), Form::kFalsy},
                                                 {ones + "x", Form::kText},
                                                 {"0x" + ones, Form::kScalar},
                                                 {"1:" + ones, Form::kText},
                                                 {"1." + ones + "e", Form::kText},
                                                 {"2020-01-01" + blanks + "x", Form::kText},
                                                 {"2020-01-01 10:10:10" + blanks + "Z", Form::kScalar}}) {
    EXPECT_EQ(form_of(text), form) << text.substr(0, 30);
  }
  TestCase test_case;
  test_case.config = "f";
  read_config("MODEL_ARGS:\n  --a: 1\nMETRICS: " + ones + "\n", test_case);
  EXPECT_THAT(test_case.error.message(), testing::StartsWith("f:3:10: METRICS must be a list, not '111"));
}

}  // namespace
}  // namespace assay::discover
