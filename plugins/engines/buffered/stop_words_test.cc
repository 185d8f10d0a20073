#include "plugins/engines/buffered/stop_words.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace assay::engines {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A vocabulary of the 256 bytes behind ten special tokens: <unk> <s> </s> ... <SPECIAL_9>.
class StopWords : public testing::Test {
 protected:
  StopWords() {
    const char* digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    nlohmann::json vocab = nlohmann::json::array();
    for (int b = 0; b < 256; ++b) {
      const std::string base64{digits[b >> 2], digits[(b & 3) << 4], '=', '='};
      vocab.push_back({{"rank", b}, {"token_bytes", base64}, {"token_str", nullptr}});
    }
    std::ofstream(file_) << vocab.dump();
    const nlohmann::json spec = {
        {"type", "TikTokenizer"}, {"model", file_.string()}, {"vocab_size", 266}, {"num_special", 10}};
    Result<TextCodec> codec = TextCodec::open(spec.dump());
    EXPECT_TRUE(codec.ok()) << codec.status().message();
    if (codec) codec_ = *std::move(codec);
  }
  ~StopWords() override { std::filesystem::remove(file_); }

  std::string refusal(const std::string& word) {
    const auto encoded = encode_stop_words({word}, codec_);
    return encoded ? "ok" : encoded.status().message();
  }

  const std::filesystem::path file_ =
      std::filesystem::path(testing::TempDir()) / ("stop_words_test." + std::to_string(::getpid()) + ".json");
  TextCodec codec_{nullptr};
};

TEST_F(StopWords, AreTheirOwnTokensEach) {
  const auto encoded = encode_stop_words({"ab", "</s>", "<SPECIAL_9>"}, codec_);
  ASSERT_TRUE(encoded.ok()) << encoded.status().message();
  EXPECT_THAT(*encoded, ElementsAre(ElementsAre('a' + 10, 'b' + 10), ElementsAre(2), ElementsAre(9)));
}

TEST_F(StopWords, WrittenLikeSpecialTokensMustBeOnes) {
  for (const char* word : {"<SPECIAL_77>", "<|endoftext|>", "<EOT>"}) {
    EXPECT_THAT(refusal(word), HasSubstr("stop word '" + std::string(word) + "' is written like a special token"));
  }
  for (const char* word : {"<br>", "<", "a <b> c", "<| |>"}) EXPECT_EQ(refusal(word), "ok") << word;
  EXPECT_THAT(refusal(""), HasSubstr("has no tokens"));
  EXPECT_THAT(refusal("\xff"), HasSubstr("UTF-8"));
}

}  // namespace
}  // namespace assay::engines
