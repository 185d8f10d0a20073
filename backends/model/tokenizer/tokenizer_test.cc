#include "backends/model/tokenizer/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

namespace assay::model {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::Ge;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

const std::string kVocab = ASSAY_SOURCE_DIR "/backends/model/tokenizer/testdata/vocab.json";  // 1756 entries

TokenizerSpec tik() {
  TokenizerSpec spec;
  spec.type = "TikTokenizer";
  spec.model = kVocab;
  spec.vocab_size = 1772;
  spec.num_special = 16;
  return spec;
}

TokenizerSpec null_of(int64_t vocab_size) {
  TokenizerSpec spec;
  spec.type = "NullTokenizer";
  spec.vocab_size = vocab_size;
  return spec;
}

std::unique_ptr<Tokenizer> open(const TokenizerSpec& spec) {
  Result<std::unique_ptr<Tokenizer>> tokenizer = open_tokenizer(spec);
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  return *std::move(tokenizer);
}

std::string failure(const TokenizerSpec& spec) {
  const Result<std::unique_ptr<Tokenizer>> tokenizer = open_tokenizer(spec);
  EXPECT_FALSE(tokenizer.ok());
  EXPECT_EQ(tokenizer.status().message().find('\n'), std::string::npos);
  return tokenizer.status().message();
}

TEST(TikTokenizer, InfoNamesSizesAndEnds) {
  const auto tokenizer = open(tik());
  EXPECT_EQ(tokenizer->info().vocab_size, 1772);
  EXPECT_EQ(tokenizer->info().bos, 1);
  EXPECT_EQ(tokenizer->info().eod, 2);
  EXPECT_EQ(tokenizer->info().description, "TikTokenizer vocab.json, pattern v2, 1772 ids, 16 of them special");
}

TEST(TikTokenizer, EmptyTextHasNoIds) {
  EXPECT_THAT(*open(tik())->encode(""), IsEmpty());
  EXPECT_EQ(*open(tik())->decode({}, SpecialTokens::kKeep), "");
}

TEST(TikTokenizer, SpecialTokensAreFoundInsideText) {
  const auto tokenizer = open(tik());
  EXPECT_THAT(*tokenizer->encode("<s></s>"), ElementsAre(1, 2));
  EXPECT_THAT(*tokenizer->encode("<SPECIAL_15><SPECIAL_7>"), ElementsAre(15, 7));
  const int32_t less = 16 + '<';
  EXPECT_THAT(*tokenizer->encode("<<s>"), ElementsAre(less, 1));
  for (const char* not_special : {"<SPECIAL_1>", "<SPECIAL_16>", "<S>", "<s", "<SPECIAL_15", "< s>"}) {
    const std::vector<int32_t> ids = *tokenizer->encode(not_special);
    EXPECT_THAT(ids, Not(IsEmpty()));
    EXPECT_THAT(ids, Each(Ge(16))) << not_special;
  }
}

TEST(TikTokenizer, NamedSpecialTokensReplaceTheFirstFillers) {
  TokenizerSpec spec = tik();
  spec.special_tokens = {"</s>", "<s>", "<unk>", "<mask>", "<pad>", "<cls>", "<sep>", "[INST]"};
  const auto tokenizer = open(spec);
  EXPECT_EQ(tokenizer->info().eod, 0);
  EXPECT_THAT(*tokenizer->encode("[INST]<SPECIAL_8>"), ElementsAre(7, 8));
}

TEST(TikTokenizer, VocabularyIsCutToItsSize) {
  TokenizerSpec spec = tik();
  spec.vocab_size = 16 + 256;  // the single bytes alone
  EXPECT_THAT(*open(spec)->encode("the"), ElementsAre(16 + 't', 16 + 'h', 16 + 'e'));
}

TEST(TikTokenizer, DecodeKeepsOrDropsSpecialTokens) {
  const auto tokenizer = open(tik());
  const std::vector<int32_t> ids = {1, 16 + 'a', 2, 16 + 'b', 7};
  EXPECT_EQ(*tokenizer->decode(ids, SpecialTokens::kKeep), "<s>a</s>b<SPECIAL_7>");
  EXPECT_EQ(*tokenizer->decode(ids, SpecialTokens::kDrop), "ab");
}

TEST(TikTokenizer, BytesOfOneCharacterJoinAcrossTokens) {
  const auto tokenizer = open(tik());
  EXPECT_EQ(*tokenizer->decode(std::vector<int32_t>{16 + 0xE2, 16 + 0x82, 16 + 0xAC}, SpecialTokens::kDrop), "€");
  EXPECT_EQ(*tokenizer->token_text(16 + 0xE2), "\uFFFD");
  EXPECT_EQ(*tokenizer->token_text(2), "</s>");
}

TEST(TikTokenizer, DecodeNamesAnIdOutOfRange) {
  const auto tokenizer = open(tik());
  for (const int32_t id : {-1, 1772, 1 << 30}) {
    for (const SpecialTokens special : {SpecialTokens::kKeep, SpecialTokens::kDrop}) {
      const Result<std::string> text = tokenizer->decode(std::vector<int32_t>{20, id}, special);
      ASSERT_FALSE(text.ok());
      EXPECT_THAT(text.status().message(), HasSubstr("id " + std::to_string(id) + " at index 1: expected 0 to 1771"));
    }
    EXPECT_FALSE(tokenizer->token_text(id).ok());
  }
}

TEST(TikTokenizer, InvalidUtf8IsRefusedWithItsOffset) {
  const Result<std::vector<int32_t>> ids = open(tik())->encode("abc\xFF");
  ASSERT_FALSE(ids.ok());
  EXPECT_THAT(ids.status().message(), HasSubstr("byte offset 3"));
}

// A quadratic step would run into the time limit of the test: 2^40 operations.
TEST(TikTokenizer, AMebibyteOfOnePieceGoesThereAndBack) {
  for (const char* pattern : {"v1", "v2"}) {
    TokenizerSpec spec = tik();
    spec.pattern = pattern;
    const auto tokenizer = open(spec);
    for (const std::string part :
         {"a", "A", "Aa", " ", "\n", "\r\n", "7", "!", "<", "<SPECIAL_", "\u0301", "中", "🙂"}) {
      std::string text;
      while (text.size() < 1 << 20) text += part;
      const Result<std::vector<int32_t>> ids = tokenizer->encode(text);
      ASSERT_TRUE(ids.ok()) << part << ": " << ids.status().message();
      EXPECT_EQ(*tokenizer->decode(*ids, SpecialTokens::kKeep), text) << part;
    }
  }
}

TEST(TikTokenizer, ThreadsShareOne) {
  const auto tokenizer = open(tik());
  const std::string text = "The License of camelCase <s> 42 naïve 中文\n\n";
  const std::vector<int32_t> expected = *tokenizer->encode(text);
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int j = 0; j < 100; ++j) EXPECT_EQ(*tokenizer->encode(text), expected);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(TikTokenizer, ArgumentsThatContradictEachOtherAreRefused) {
  const auto with = [](auto change) {
    TokenizerSpec spec = tik();
    change(spec);
    return failure(spec);
  };
  EXPECT_THAT(with([](auto& s) { s.num_special = 6; }), HasSubstr("num-special-tokens 6: expected at least 7"));
  EXPECT_THAT(with([](auto& s) { s.num_special = -1; }), HasSubstr("num-special-tokens -1: expected at least 7"));
  EXPECT_THAT(with([](auto& s) { s.num_special = 1772; }), HasSubstr("expected less than the vocabulary size 1772"));
  EXPECT_THAT(with([](auto& s) { s.vocab_size = -5; }), HasSubstr("--vocab-size -5"));
  EXPECT_THAT(with([](auto& s) { s.vocab_size = 1LL << 40; }), HasSubstr("--vocab-size 1099511627776"));
  EXPECT_THAT(with([](auto& s) { s.vocab_size = 200; }), HasSubstr("leaves 184 entries"));
  EXPECT_THAT(with([](auto& s) { s.vocab_size = 0; }),
              HasSubstr("1756 entries, rank 1756 is missing"));  // 0: the default
  EXPECT_THAT(with([](auto& s) { s.pattern = "v9"; }), HasSubstr("'v9' is not known, expected v1 or v2"));
  EXPECT_THAT(with([](auto& s) { s.model = ""; }), HasSubstr("--tokenizer-model is not set"));
  EXPECT_THAT(with([](auto& s) { s.special_tokens = {"<s>"}; }), HasSubstr("<unk> is missing"));
  const std::vector<std::string> seven = {"<unk>", "<s>", "</s>", "<mask>", "<pad>", "<cls>", "<sep>"};
  const auto with_special = [&](const std::string& name) {
    return with([&](auto& s) { (s.special_tokens = seven).push_back(name); });
  };
  EXPECT_THAT(with_special("<s>"), HasSubstr("'<s>' is there twice"));
  EXPECT_THAT(with_special("<SPECIAL_9>"), HasSubstr("'<SPECIAL_9>' is there twice"));
  EXPECT_THAT(with_special(""), HasSubstr("one is empty"));
  EXPECT_THAT(with_special("<s>x"), HasSubstr("'<s>' begins '<s>x'"));
}

TEST(TikTokenizer, EmptyPatternIsV2) {
  TokenizerSpec spec = tik();
  spec.pattern.clear();
  EXPECT_THAT(open(spec)->info().description, HasSubstr("pattern v2"));
}

TEST(NullTokenizer, TextIsIdsBetweenSingleBlanks) {
  const auto tokenizer = open(null_of(100));
  EXPECT_THAT(*tokenizer->encode("5 0 99 007"), ElementsAre(5, 0, 99, 7));
  EXPECT_EQ(*tokenizer->decode(std::vector<int32_t>{5, 0, 99}, SpecialTokens::kDrop), "5 0 99");
  EXPECT_EQ(*tokenizer->token_text(42), "42");
  EXPECT_EQ(tokenizer->info().eod, 99);
  EXPECT_FALSE(tokenizer->info().bos.has_value());
}

TEST(NullTokenizer, EodMayBeGiven) {
  TokenizerSpec spec = null_of(100);
  spec.null_eod_id = 3;
  EXPECT_EQ(open(spec)->info().eod, 3);
  spec.null_eod_id = 100;
  EXPECT_THAT(failure(spec), HasSubstr("--null-tokenizer-eod-id 100: expected 0 to 99"));
}

TEST(NullTokenizer, BadTextIsNamedWithItsPlace) {
  const auto tokenizer = open(null_of(100));
  const auto message = [&](const char* text) {
    const Result<std::vector<int32_t>> ids = tokenizer->encode(text);
    EXPECT_FALSE(ids.ok()) << text;
    return ids.status().message();
  };
  EXPECT_THAT(message("1  2"), HasSubstr("no id at byte offset 2"));
  EXPECT_THAT(message("1 2 "), HasSubstr("no id at byte offset 4"));
  EXPECT_THAT(message(""), HasSubstr("no id at byte offset 0"));
  EXPECT_THAT(message("1 2x"), HasSubstr("'2x' at byte offset 2 is not an id"));
  EXPECT_THAT(message("1 -"), HasSubstr("'-' at byte offset 2 is not an id"));
  EXPECT_THAT(message("1\n"), HasSubstr("'1\\x0A' at byte offset 0 is not an id"));
  EXPECT_THAT(message("1 100"), HasSubstr("id 100 at byte offset 2: expected 0 to 99"));
  EXPECT_THAT(message("-3"), HasSubstr("id -3 at byte offset 0: expected 0 to 99"));
  EXPECT_THAT(message("99999999999999999999"), HasSubstr("expected 0 to 99"));
  EXPECT_THAT(message("1 \xFF"), HasSubstr("invalid UTF-8 at byte offset 2"));
  EXPECT_FALSE(tokenizer->decode(std::vector<int32_t>{100}, SpecialTokens::kKeep).ok());
}

TEST(NullTokenizer, NeedsAVocabularySize) {
  TokenizerSpec spec = null_of(0);
  EXPECT_THAT(failure(spec), HasSubstr("--vocab-size is 0"));
  spec.vocab_size.reset();
  EXPECT_THAT(failure(spec), HasSubstr("--vocab-size is not set"));
}

TEST(OpenTokenizer, OtherTypesNameTheSupportedOnes) {
  TokenizerSpec spec = tik();
  spec.type = "HuggingFaceTokenizer";
  const Result<std::unique_ptr<Tokenizer>> tokenizer = open_tokenizer(spec);
  ASSERT_FALSE(tokenizer.ok());
  EXPECT_EQ(tokenizer.status().code(), StatusCode::kUnsupported);
  EXPECT_THAT(tokenizer.status().message(), HasSubstr("expected TikTokenizer or NullTokenizer"));
}

TEST(EncodePrompt, LeadingBosIdsAreRemoved) {
  const auto tokenizer = open(tik());
  EXPECT_EQ(*encode_prompt(*tokenizer, "<s><s>a<s>"), *tokenizer->encode("a<s>"));
  EXPECT_THAT(*encode_prompt(*tokenizer, "<s>"), IsEmpty());
  EXPECT_THAT(*encode_prompt(*open(null_of(9)), "1 1"), ElementsAre(1, 1));
  EXPECT_FALSE(encode_prompt(*tokenizer, "\xFF").ok());
}

TEST(PaddedVocabSize, RoundsUpToTheMultiple) {
  EXPECT_EQ(*padded_vocab_size(131072, 128, 1), 131072);
  EXPECT_EQ(*padded_vocab_size(131073, 128, 1), 131200);
  EXPECT_EQ(*padded_vocab_size(100, 128, 4), 512);
  EXPECT_FALSE(padded_vocab_size(100, 0, 1).ok());
  EXPECT_FALSE(padded_vocab_size(-1, 128, 1).ok());
  EXPECT_FALSE(padded_vocab_size(1, 1LL << 40, 1LL << 40).ok());
}

}  // namespace
}  // namespace assay::model
