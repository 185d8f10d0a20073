// Texts and ids recorded from the tiktoken library (testdata/generate_oracle.py), and the shared vectors recorded
// through Megatron-LM's TikTokenizer.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "backends/model/tokenizer/tokenizer.h"

namespace assay::model {
namespace {

using nlohmann::json;

const std::filesystem::path kTestData = ASSAY_SOURCE_DIR "/backends/model/tokenizer/testdata";
const std::filesystem::path kVectors = ASSAY_SOURCE_DIR "/../shared/vectors";

json read_json(const std::filesystem::path& file) {
  std::ifstream in(file);
  EXPECT_TRUE(in) << file;
  return json::parse(in);
}

std::unique_ptr<Tokenizer> open(const std::filesystem::path& model, const std::string& pattern, int64_t vocab_size,
                                int64_t num_special) {
  Result<std::unique_ptr<Tokenizer>> tokenizer = open_tokenizer({.type = "TikTokenizer",
                                                                 .model = model,
                                                                 .pattern = pattern,
                                                                 .vocab_size = vocab_size,
                                                                 .num_special = num_special,
                                                                 .special_tokens = {},
                                                                 .null_eod_id = {}});
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  return *std::move(tokenizer);
}

void expect_same_ids(const Tokenizer& tokenizer, const std::string& text, const std::vector<int32_t>& expected) {
  const Result<std::vector<int32_t>> ids = tokenizer.encode(text);
  ASSERT_TRUE(ids.ok()) << text << ": " << ids.status().message();
  EXPECT_EQ(*ids, expected) << json(text).dump();
}

class OracleTest : public testing::TestWithParam<const char*> {};

TEST_P(OracleTest, IdsEqualThoseOfTiktoken) {
  const json oracle = read_json(kTestData / "oracle.json");
  const auto tokenizer = open(kTestData / "vocab.json", GetParam(), 1772, 16);
  ASSERT_GE(oracle["encode"].size(), 600U);
  for (const json& row : oracle["encode"]) {
    const auto text = row["text"].get<std::string>();
    expect_same_ids(*tokenizer, text, row[GetParam()]);
    const Result<std::string> back =
        tokenizer->decode(row[GetParam()].get<std::vector<int32_t>>(), SpecialTokens::kKeep);
    ASSERT_TRUE(back.ok());
    EXPECT_EQ(*back, text);
  }
}

TEST_P(OracleTest, SharedVectorsAreAllEqual) {
  if (!std::filesystem::exists(kVectors)) GTEST_SKIP() << "no " << kVectors;
  const json vectors = read_json(kVectors / "tiktoken.json");
  const auto tokenizer = open(kVectors / "vocab.json", GetParam(), 4096, 64);
  ASSERT_EQ(vectors[GetParam()].size(), 131U);
  for (const json& row : vectors[GetParam()]) {
    expect_same_ids(*tokenizer, row["text"], row["ids"]);
    const Result<std::string> decoded = tokenizer->decode(row["ids"].get<std::vector<int32_t>>(), SpecialTokens::kKeep);
    ASSERT_TRUE(decoded.ok());
    EXPECT_EQ(*decoded, row["decoded"].get<std::string>());
  }
}

INSTANTIATE_TEST_SUITE_P(Patterns, OracleTest, testing::Values("v1", "v2"),
                         [](const auto& pattern) { return std::string(pattern.param); });

TEST(Oracle, DecodedTextEqualsThatOfTiktoken) {
  const json oracle = read_json(kTestData / "oracle.json");
  const auto tokenizer = open(kTestData / "vocab.json", "v2", 1772, 16);
  ASSERT_GE(oracle["decode"].size(), 300U);
  for (const json& row : oracle["decode"]) {
    const auto ids = row["ids"].get<std::vector<int32_t>>();
    EXPECT_EQ(*tokenizer->decode(ids, SpecialTokens::kKeep), row["text"].get<std::string>()) << row["ids"];
    EXPECT_EQ(*tokenizer->decode(ids, SpecialTokens::kDrop), row["text_only"].get<std::string>()) << row["ids"];
  }
}

}  // namespace
}  // namespace assay::model
