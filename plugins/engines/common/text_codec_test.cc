#include "plugins/engines/common/text_codec.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace assay::engines {
namespace {

using testing::HasSubstr;

constexpr int kSpecial = 10;  // ids below are <unk> <s> </s> ... <SPECIAL_9>; byte b has id 10 + b

// A vocabulary of the 256 bytes alone, so that any character can be cut in two.
class Codec : public testing::Test {
 protected:
  Codec() {
    const char* digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    nlohmann::json vocab = nlohmann::json::array();
    for (int b = 0; b < 256; ++b) {
      const std::string base64{digits[b >> 2], digits[(b & 3) << 4], '=', '='};
      vocab.push_back({{"rank", b}, {"token_bytes", base64}, {"token_str", nullptr}});
    }
    std::ofstream(file_) << vocab.dump();
    const nlohmann::json spec = {{"type", "TikTokenizer"},
                                 {"model", file_.string()},
                                 {"pattern", "v2"},
                                 {"vocab_size", 256 + kSpecial},
                                 {"num_special", kSpecial}};
    Result<TextCodec> codec = TextCodec::open(spec.dump());
    EXPECT_TRUE(codec.ok()) << codec.status().message();
    if (codec) codec_ = *std::move(codec);
  }
  ~Codec() override { std::filesystem::remove(file_); }

  static std::vector<int32_t> bytes(std::string_view text) {
    std::vector<int32_t> ids;
    for (const char c : text) ids.push_back(static_cast<uint8_t>(c) + kSpecial);
    return ids;
  }

  const std::filesystem::path file_ =
      std::filesystem::path(testing::TempDir()) / ("text_codec_test." + std::to_string(::getpid()) + ".json");
  TextCodec codec_{nullptr};
};

TEST_F(Codec, CutsTheGeneratedTextOnCodePoints) {
  const std::string prompt = "\u201cPublic Licen\u00e7e\u201d";
  ASSERT_TRUE(codec_.encode(prompt).ok());
  std::vector<int32_t> ids = *codec_.encode(prompt);
  for (const int32_t id : bytes(" \u2013 yes")) ids.push_back(id);
  const auto generated = codec_.generated(prompt, ids);
  ASSERT_TRUE(generated.has_value());
  EXPECT_EQ(generated->text, " \u2013 yes");
  EXPECT_TRUE(generated->cut_in_place);
}

TEST_F(Codec, ReplacesACharacterThatIsCutAtTheEnd) {
  std::vector<int32_t> ids = bytes("a");
  for (const int32_t id : bytes("b\u2013")) ids.push_back(id);
  ids.pop_back();
  EXPECT_EQ(codec_.generated("a", ids)->text, "b\ufffd");
}

TEST_F(Codec, DropsSpecialTokensAndTrailingEods) {
  std::vector<int32_t> ids = bytes("ab");
  ids.push_back(9);
  for (const int32_t id : bytes("cd")) ids.push_back(id);
  ids.push_back(2);
  ids.push_back(2);
  EXPECT_EQ(codec_.generated("ab", ids)->text, "cd");
  EXPECT_EQ(codec_.eod(), 2);
  EXPECT_EQ(codec_.token(2), "</s>") << "a candidate keeps its name";
}

TEST_F(Codec, TellsWhenThePromptDoesNotReadBack) {
  const std::string prompt = "a<unk>b";
  std::vector<int32_t> ids = *codec_.encode(prompt);
  EXPECT_EQ(ids.size(), 3U);
  for (const int32_t id : bytes("0123456789")) ids.push_back(id);
  const auto generated = codec_.generated(prompt, ids);
  EXPECT_FALSE(generated->cut_in_place);
  EXPECT_EQ(generated->text, "56789") << "cut where the ancestor cuts: after 7 code points of 'ab0123456789'";
}

TEST_F(Codec, HasAnEmptyTextWhenNothingIsLeftBehindThePrompt) {
  EXPECT_EQ(codec_.generated("a<unk>b", *codec_.encode("a<unk>b"))->text, "");
}

TEST_F(Codec, ShowsIdsOfThePaddedVocabularyAsReplacementCharacters) {
  std::vector<int32_t> ids = bytes("ab");
  ids.push_back(300);
  ids.push_back('c' + kSpecial);
  EXPECT_EQ(codec_.decode(ids), "ab\ufffdc");
  EXPECT_EQ(codec_.token(300), std::nullopt);
}

TEST_F(Codec, FindsSpecialTokensThatTheTokenizerDoesNotHave) {
  EXPECT_EQ(codec_.unknown_special("a <SPECIAL_9> b <SPECIAL_10> c"), "<SPECIAL_10>");
  EXPECT_EQ(codec_.unknown_special("<SPECIAL_<SPECIAL_70>"), "<SPECIAL_70>");
  for (const char* text :
       {"", "<SPECIAL_9>", "<SPECIAL_>", "<SPECIAL_12", "<SPECIAL_x>", "<|endoftext|>", "SPECIAL_70"}) {
    EXPECT_EQ(codec_.unknown_special(text), std::nullopt) << text;
  }
  EXPECT_EQ(TextCodec(nullptr).unknown_special("<SPECIAL_70>"), std::nullopt);
}

TEST_F(Codec, RefusesTextThatIsNotUtf8) { EXPECT_THAT(codec_.encode("a\xc3").status().message(), HasSubstr("UTF-8")); }

TEST(TextCodec, RefusesADescriptionThatItDoesNotKnow) {
  EXPECT_THAT(TextCodec::open(R"({"type": "NullTokenizer", "vocab": 3})").status().message(),
              HasSubstr("unknown member vocab"));
  EXPECT_EQ(TextCodec::open(R"({"type": "TikTokenizer", "model": "/no/such/file.json"})").status().code(),
            StatusCode::kNotFound);
}

}  // namespace
}  // namespace assay::engines
