#include "backends/model/tokenizer/tokenize_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "backends/model/tokenizer/json_line.h"

namespace assay::model {
namespace {

using namespace std::string_literals;  // NOLINT: literals only
using testing::HasSubstr;
using testing::Not;

std::unique_ptr<Tokenizer> open_small() {
  TokenizerSpec spec;
  spec.type = "TikTokenizer";
  spec.model = ASSAY_SOURCE_DIR "/backends/model/tokenizer/testdata/vocab.json";
  spec.vocab_size = 16 + 256;
  spec.num_special = 16;
  Result<std::unique_ptr<Tokenizer>> tokenizer = open_tokenizer(spec);
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  return *std::move(tokenizer);
}

struct Outcome {
  Status status;
  std::string out;
};

Outcome run(const std::string& in, bool decode = false) {
  std::istringstream input(in);
  std::ostringstream output;
  Status status = tokenize_lines(input, output, *open_small(), decode);
  return {std::move(status), output.str()};
}

std::string line_failure(const std::string& in, bool decode = false) {
  const Outcome outcome = run(in, decode);
  EXPECT_FALSE(outcome.status.ok()) << in;
  EXPECT_THAT(outcome.status.message(), Not(HasSubstr("\n")));
  return outcome.status.message();
}

TEST(TokenizeLines, TextBecomesIdsLineByLine) {
  const Outcome outcome =
      run("{\"text\": \"ab\"}\r\n{\"id\": [1, {\"text\": 2}], \"text\": \"<s>\\u0041\"}\n{\"text\":\"\"}");
  EXPECT_TRUE(outcome.status.ok()) << outcome.status.message();
  EXPECT_EQ(outcome.out, "{\"ids\": [113, 114]}\n{\"ids\": [1, 81]}\n{\"ids\": []}\n");
}

TEST(TokenizeLines, IdsBecomeTextInRawUtf8) {
  const Outcome outcome =
      run("{\"ids\": [1, 242, 146, 188, 26, 50, 108, 16]}\n{\"ids\": []}\n{\"ids\": [242]}\n", true);
  EXPECT_TRUE(outcome.status.ok()) << outcome.status.message();
  EXPECT_EQ(outcome.out, "{\"text\": \"<s>€\\n\\\"\\\\\\u0000\"}\n{\"text\": \"\"}\n{\"text\": \"\uFFFD\"}\n");
}

TEST(TokenizeLines, DecodingTheIdsGivesTheTextBack) {
  const std::string lines = "{\"text\": \"na\u00EFve 中文 🙂\\r\\n\\t\\u001f </s>\"}\n";
  const Outcome ids = run(lines);
  ASSERT_TRUE(ids.status.ok());
  EXPECT_EQ(run(ids.out, true).out, lines);
}

TEST(TokenizeLines, BadLinesAreNamedByNumber) {
  const std::string good = "{\"text\": \"a\"}\n";
  EXPECT_THAT(line_failure(good + "{\"text\": \"\xFF\"}\n"), HasSubstr("line 2: invalid UTF-8 at byte offset 10"));
  EXPECT_THAT(line_failure(good + "{\"text\": \"\xED\xA0\x80\"}\n"),
              HasSubstr("line 2: invalid UTF-8 at byte offset 10: a lone"));
  EXPECT_THAT(line_failure(good + good + "{\"text\": \"\\ud800\"}\n"), HasSubstr("line 3: a lone surrogate escape"));
  EXPECT_THAT(line_failure("{\"text\": \"\\ud800x\"}"), HasSubstr("line 1: a lone surrogate escape"));
  EXPECT_THAT(line_failure("{\"text\": \"\\ud800\\u0041\"}"), HasSubstr("line 1: a lone surrogate escape"));
  EXPECT_THAT(line_failure("{\"text\": \"\\udc00\"}"), HasSubstr("line 1: a lone surrogate escape"));
  EXPECT_THAT(line_failure("{\"other\": \"\\udc00\", \"text\": \"a\"}"), HasSubstr("line 1: a lone surrogate escape"));
  EXPECT_THAT(line_failure("\n" + good), HasSubstr("line 1: empty line"));
  EXPECT_THAT(line_failure(good + "\n" + good), HasSubstr("line 2: empty line"));
  EXPECT_THAT(line_failure(good + " \r\n"), HasSubstr("line 2: empty line"));
  EXPECT_THAT(line_failure("{\"text\": \"a\""), HasSubstr("line 1: not JSON at byte offset 12: "));
  EXPECT_THAT(line_failure("{\"text\": \"a\"} x"), HasSubstr("line 1: not JSON at byte offset"));
  EXPECT_THAT(line_failure("{\"text\": \"a\"}\0junk"s), HasSubstr("line 1: not JSON: a NUL byte at byte offset 13"));
  EXPECT_THAT(line_failure("{\"text\": \"a\tb\"}"), HasSubstr("line 1: not JSON at byte offset"));
  EXPECT_THAT(line_failure("\xEF\xBB\xBF" + good), HasSubstr("line 1: a byte order mark"));
  EXPECT_THAT(line_failure("{\"ids\": [1]}"), HasSubstr("line 1: field 'text' is missing"));
  EXPECT_THAT(line_failure("{\"text\": 1}"), HasSubstr("line 1: field 'text' has another type"));
  EXPECT_THAT(line_failure("{\"text\": null}"), HasSubstr("line 1: field 'text' has another type"));
  EXPECT_THAT(line_failure("{\"text\": [\"a\"]}"), HasSubstr("line 1: field 'text' has another type"));
  EXPECT_THAT(line_failure("{\"text\": {\"text\": \"a\"}}"), HasSubstr("line 1: field 'text' has another type"));
  EXPECT_THAT(line_failure("{\"text\": \"a\", \"text\": \"b\"}"), HasSubstr("line 1: key 'text' is there twice"));
  EXPECT_THAT(line_failure("{\"a\": 1, \"a\": 1, \"text\": \"b\"}"), HasSubstr("line 1: key 'a' is there twice"));
  EXPECT_THAT(line_failure("[\"text\"]"), HasSubstr("line 1: a JSON list"));
  EXPECT_THAT(line_failure("\"text\""), HasSubstr("line 1: not a JSON object"));
}

TEST(TokenizeLines, BadIdsAreNamedByLineAndIndex) {
  EXPECT_THAT(line_failure("{\"ids\": [1, 2.5]}", true), HasSubstr("line 1: field 'ids', index 1: not an integer"));
  EXPECT_THAT(line_failure("{\"ids\": [1, \"2\"]}", true), HasSubstr("index 1: not an integer"));
  EXPECT_THAT(line_failure("{\"ids\": [1, [2]]}", true), HasSubstr("field 'ids' has another type"));
  EXPECT_THAT(line_failure("{\"ids\": 1}", true), HasSubstr("field 'ids' has another type"));
  EXPECT_THAT(line_failure("{\"ids\": {\"a\": 1}}", true), HasSubstr("field 'ids' has another type"));
  EXPECT_THAT(line_failure("{\"ids\": [4294967296]}", true), HasSubstr("index 0: 4294967296 is no 32-bit integer"));
  EXPECT_THAT(line_failure("{\"ids\": [99999999999999999999]}", true), HasSubstr("index 0: not an integer"));
  EXPECT_THAT(line_failure("{\"ids\": [1]}\n{\"ids\": [1, 272]}", true),
              HasSubstr("line 2: id 272 at index 1: expected 0 to 271"));
  EXPECT_THAT(line_failure("{\"text\": \"a\"}", true), HasSubstr("field 'ids' is missing"));
}

TEST(TokenizeLines, LinesBeforeABadOneHaveBeenWritten) {
  const Outcome outcome = run("{\"text\": \"a\"}\n{}\n");
  EXPECT_FALSE(outcome.status.ok());
  EXPECT_EQ(outcome.out, "{\"ids\": [113]}\n");
}

TEST(TokenizeLines, OutputThatCannotBeWrittenIsTold) {
  std::istringstream input("{\"text\": \"a\"}\n");
  std::ostringstream output;
  output.setstate(std::ios::badbit);
  EXPECT_EQ(tokenize_lines(input, output, *open_small(), false).code(), StatusCode::kInfra);
}

TEST(JsonLine, DeepNestingInOtherFieldsIsSkipped) {
  const std::string line = "{\"x\": " + std::string(100'000, '[') + std::string(100'000, ']') + ", \"text\": \"a\"}";
  const Result<std::string> text = json_line_text(line, "text");
  ASSERT_TRUE(text.ok()) << text.status().message();
  EXPECT_EQ(*text, "a");
}

}  // namespace
}  // namespace assay::model
