#include "backends/model/tokenizer/bpe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace assay::model {
namespace {

using testing::ElementsAre;

std::vector<std::string> with_bytes(const std::vector<std::string>& more) {
  std::vector<std::string> tokens;
  tokens.reserve(256 + more.size());
  for (int b = 0; b < 256; ++b) tokens.emplace_back(1, static_cast<char>(b));
  tokens.insert(tokens.end(), more.begin(), more.end());
  return tokens;
}

std::vector<std::string> texts(const BytePairTable& table, std::string_view piece) {
  std::vector<int32_t> ids;
  table.encode(piece, 1000, ids);
  std::vector<std::string> out;
  out.reserve(ids.size());
  for (const int32_t id : ids) out.emplace_back(table.bytes(id - 1000));
  return out;
}

// The definition, word for word: quadratic and plain.
std::vector<std::string> obvious(const BytePairTable& table, const std::string& piece) {
  if (table.rank(piece)) return {piece};
  std::vector<std::string> parts;
  parts.reserve(piece.size());
  for (const char c : piece) parts.emplace_back(1, c);
  for (;;) {
    size_t best = parts.size();
    int32_t best_rank = 0;
    for (size_t i = 0; i + 1 < parts.size(); ++i) {
      const std::optional<int32_t> rank = table.rank(parts[i] + parts[i + 1]);
      if (rank && (best == parts.size() || *rank < best_rank)) best = i, best_rank = *rank;
    }
    if (best == parts.size()) return parts;
    parts[best] += parts[best + 1];
    parts.erase(parts.begin() + static_cast<ptrdiff_t>(best) + 1);
  }
}

TEST(BytePairTable, LowestRankMergesFirstAndLeftmostOnTies) {
  const auto table = BytePairTable::make(with_bytes({"bc", "ab", "aa", "aaa"}));
  ASSERT_TRUE(table.ok());
  EXPECT_THAT(texts(*table, "abc"), ElementsAre("a", "bc"));
  EXPECT_THAT(texts(*table, "aaaaa"), ElementsAre("aa", "aaa"));
  EXPECT_THAT(texts(*table, "xaab"), ElementsAre("x", "a", "ab"));
}

TEST(BytePairTable, WholePieceIsFoundWithoutMerges) {
  const auto table = BytePairTable::make(with_bytes({"word"}));
  ASSERT_TRUE(table.ok());
  EXPECT_THAT(texts(*table, "word"), ElementsAre("word"));
  EXPECT_THAT(texts(*table, "wordy"), ElementsAre("w", "o", "r", "d", "y"));
}

TEST(BytePairTable, EqualTokensAreRefused) {
  const auto table = BytePairTable::make(with_bytes({"ab", "cd", "ab"}));
  ASSERT_FALSE(table.ok());
  EXPECT_EQ(table.status().message(), "rank 258: the same token_bytes as rank 256");
}

TEST(BytePairTable, HeapAgreesWithTheObviousVersion) {
  std::mt19937 random(5);
  for (int round = 0; round < 60; ++round) {
    std::vector<std::string> more;
    for (int i = 0; i < 40; ++i) {
      std::string token;
      for (size_t n = 2 + random() % 5; n > 0; --n) token += static_cast<char>('a' + random() % 3);
      if (std::find(more.begin(), more.end(), token) == more.end()) more.push_back(token);
    }
    const auto table = BytePairTable::make(with_bytes(more));
    ASSERT_TRUE(table.ok());
    for (int i = 0; i < 20; ++i) {
      std::string piece;
      for (size_t n = 1 + random() % 150; n > 0; --n) piece += static_cast<char>('a' + random() % 3);
      ASSERT_EQ(texts(*table, piece), obvious(*table, piece)) << piece;
    }
  }
}

}  // namespace
}  // namespace assay::model
