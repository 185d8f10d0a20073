#include "backends/model/tokenizer/tik_vocab.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

namespace assay::model {
namespace {

using nlohmann::json;
using namespace std::string_literals;  // NOLINT: literals only
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr int kEntries = 260;

json entry(int rank, const std::string& base64) {
  return {{"rank", rank}, {"token_bytes", base64}, {"token_str", nullptr}};
}

std::string base64_of(uint8_t byte) {
  const char* digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  return std::string{digits[byte >> 2], digits[(byte & 3) << 4], '=', '='};
}

// The single bytes, then "ab" "cd" "efg" "h,,h".
json good_vocab() {
  json vocab = json::array();
  for (int b = 0; b < 256; ++b) vocab.push_back(entry(b, base64_of(static_cast<uint8_t>(b))));
  for (const char* more : {"YWI=", "Y2Q=", "ZWZn", "aCwsaA=="}) {
    vocab.push_back(entry(static_cast<int>(vocab.size()), more));
  }
  return vocab;
}

Result<BytePairTable> read(const std::string& content, int64_t count = kEntries) {
  const std::filesystem::path file =
      std::filesystem::path(testing::TempDir()) / ("assay_tik_vocab_" + std::to_string(::getpid()) + ".json");
  std::ofstream(file, std::ios::binary) << content;
  Result<BytePairTable> table = read_tik_vocab(file, count);
  std::filesystem::remove(file);
  return table;
}

std::string failure(const std::string& content, int64_t count = kEntries) {
  const Result<BytePairTable> table = read(content, count);
  EXPECT_FALSE(table.ok());
  if (table.ok()) return "";
  EXPECT_EQ(table.status().code(), StatusCode::kInvalid);
  EXPECT_THAT(table.status().message(),
              AllOf(HasSubstr("assay_tik_vocab_" + std::to_string(::getpid()) + ".json: "), Not(HasSubstr("\n"))));
  return table.status().message();
}

std::string failure(const std::function<void(json&)>& change) {
  json vocab = good_vocab();
  change(vocab);
  return failure(vocab.dump());
}

TEST(TikVocab, GoodFileIsRead) {
  const Result<BytePairTable> table = read(good_vocab().dump(1));
  ASSERT_TRUE(table.ok()) << table.status().message();
  EXPECT_EQ(table->size(), 260U);
  EXPECT_EQ(table->bytes(0), "\0"s);
  EXPECT_EQ(table->bytes(255), "\xFF");
  EXPECT_EQ(table->bytes(258), "efg");
  EXPECT_EQ(table->rank("h,,h"), 259);
}

TEST(TikVocab, EntriesBehindTheCutAreNotLookedAt) {
  json vocab = good_vocab();
  vocab[258] = entry(3, "!");
  vocab[259] = {1, {{"deep", {1, 2}}}};
  const Result<BytePairTable> table = read(vocab.dump(), 258);
  ASSERT_TRUE(table.ok()) << table.status().message();
  EXPECT_EQ(table->size(), 258U);
}

TEST(TikVocab, RanksMustCountUp) {
  EXPECT_THAT(failure([](json& v) { v[258]["rank"] = 257; }),
              HasSubstr("entry 258: rank 257 a second time, expected rank 258"));
  EXPECT_THAT(failure([](json& v) { v.erase(257); }), HasSubstr("entry 257: rank 258, expected rank 257"));
  EXPECT_THAT(failure([](json& v) { std::swap(v[256], v[257]); }), HasSubstr("entry 256: rank 257, expected rank 256"));
  EXPECT_THAT(failure([](json& v) { v[256]["rank"] = -1; }), HasSubstr("entry 256: rank -1, expected rank 256"));
  EXPECT_THAT(failure([](json& v) { v[256]["rank"] = 256.0; }), HasSubstr("entry 256: rank is not an integer"));
  EXPECT_THAT(failure([](json& v) { v[256]["rank"] = "256"; }), HasSubstr("entry 256: rank is not an integer"));
  EXPECT_THAT(failure([](json& v) { v[256]["rank"] = true; }), HasSubstr("entry 256: rank is not an integer"));
  EXPECT_THAT(failure([](json& v) { v[256]["rank"] = UINT64_MAX; }), HasSubstr("entry 256: rank is not an integer"));
}

TEST(TikVocab, TokensMustBeDistinctBytes) {
  EXPECT_THAT(failure([](json& v) { v[259]["token_bytes"] = "YWI="; }),
              HasSubstr("rank 259: the same token_bytes as rank 256"));
  EXPECT_THAT(failure([](json& v) { v[256]["token_bytes"] = "AA=="; }),
              HasSubstr("rank 256: the same token_bytes as rank 0"));
  EXPECT_THAT(failure([](json& v) { v[97]["token_bytes"] = "Yg=="; }),
              HasSubstr("rank 97: expected the single byte 97"));
  EXPECT_THAT(failure([](json& v) { v[257]["token_bytes"] = ""; }), HasSubstr("rank 257: token_bytes is empty"));
  EXPECT_THAT(failure([](json& v) { v[257]["token_bytes"] = 7; }), HasSubstr("entry 257: token_bytes is not a string"));
  EXPECT_THAT(failure([](json& v) { v[257]["token_bytes"] = {1}; }),
              HasSubstr("entry 257: rank or token_bytes is not"));
  for (const char* broken : {"YWI", "YW=I", "Y===", "====", "YW I=", "YW-_", "YWJé"}) {
    EXPECT_THAT(failure([&](json& v) { v[257]["token_bytes"] = broken; }), HasSubstr("rank 257: token_bytes '"))
        << broken;
  }
}

TEST(TikVocab, EntriesHaveExactlyThreeKeys) {
  EXPECT_THAT(failure([](json& v) { v[256].erase("token_str"); }), HasSubstr("entry 256: a key is missing"));
  EXPECT_THAT(failure([](json& v) { v[256]["score"] = 1; }), HasSubstr("entry 256: unknown key 'score'"));
  EXPECT_THAT(failure([](json& v) { v[256]["a\nb"] = 1; }), HasSubstr("entry 256: unknown key 'a\\x0Ab'"));
  EXPECT_THAT(failure([](json& v) { v[256] = 5; }), HasSubstr("entry 256 is not an object"));
  EXPECT_THAT(failure([](json& v) { v[256] = json::array(); }), HasSubstr("entry 256 is a list"));
  EXPECT_THAT(failure([](json& v) { v[256] = json::object(); }), HasSubstr("entry 256: a key is missing"));
  EXPECT_THAT(failure("[{\"rank\": 0, \"rank\": 0}]"), HasSubstr("entry 0: key 'rank' is there twice"));
}

TEST(TikVocab, FileMustBeAListOfEnoughEntries) {
  EXPECT_THAT(failure(good_vocab().dump(), 300), HasSubstr("260 entries, rank 260 is missing, expected at least 300"));
  EXPECT_THAT(failure("[]"), HasSubstr("0 entries"));
  EXPECT_THAT(failure("{}"), HasSubstr("an object, expected a list"));
  EXPECT_THAT(failure("7"), HasSubstr("a single value, expected a list"));
  EXPECT_THAT(failure(good_vocab().dump(), 255), HasSubstr("leaves 255 entries"));
  EXPECT_THAT(failure(good_vocab().dump(), 2147483647 - 1000), HasSubstr("expected at least 2147482647"));
}

TEST(TikVocab, BrokenJsonIsNamedWithItsOffset) {
  const std::string good = good_vocab().dump();
  EXPECT_THAT(failure(""), HasSubstr("not JSON at byte offset 0"));
  EXPECT_THAT(failure(good.substr(0, 1000)), HasSubstr("not JSON at byte offset 1000: "));
  EXPECT_THAT(failure("[1,]"), HasSubstr("entry 0 is not an object"));
  EXPECT_THAT(failure("hello\nworld"), HasSubstr("not JSON at byte offset 0"));
  EXPECT_THAT(failure(good + "x"), HasSubstr("not JSON at byte offset " + std::to_string(good.size())));
  EXPECT_THAT(failure(good + "\0"s), HasSubstr("a NUL byte at byte offset"));
  EXPECT_THAT(failure("\xFF"), HasSubstr("invalid UTF-8 at byte offset 0"));
  EXPECT_THAT(failure("\xEF\xBB\xBF" + good), HasSubstr("byte order mark"));
}

TEST(TikVocab, EveryBitFlipIsAnErrorOrTheSameSizeOfTable) {
  const std::string good = good_vocab().dump();
  for (size_t i = 0; i < good.size(); i += 7) {
    std::string flipped = good;
    flipped[i] = static_cast<char>(flipped[i] ^ (1 << (i % 8)));
    const Result<BytePairTable> table = read(flipped);
    if (table.ok()) {
      EXPECT_EQ(table->size(), 260U);
    } else {
      EXPECT_THAT(table.status().message(), Not(HasSubstr("\n")));
    }
  }
}

TEST(TikVocab, MissingFileAndDirectoryAreTold) {
  const Result<BytePairTable> missing = read_tik_vocab("/nonexistent/vocab.json", 300);
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.status().code(), StatusCode::kNotFound);
  EXPECT_THAT(missing.status().message(), HasSubstr("/nonexistent/vocab.json: file not found"));
  EXPECT_THAT(read_tik_vocab(testing::TempDir(), 300).status().message(), HasSubstr("is a directory"));
}

}  // namespace
}  // namespace assay::model
