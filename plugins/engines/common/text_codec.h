// Prompt text to ids, and generated ids to text the way Megatron-LM's static engine cuts it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "assay/status.h"
#include "backends/model/tokenizer/tokenizer.h"

namespace assay::engines {

struct GeneratedText {
  std::string text;
  // The text of all ids begins with the prompt. Where it does not (special tokens in the prompt, bytes that are not
  // UTF-8 alone), the cut may fall in the wrong place, as it does in Megatron-LM.
  bool cut_in_place = true;
};

// Immutable: safe from any thread. Without a tokenizer nothing can be encoded, and there is no text and no EOD.
class TextCodec {
 public:
  explicit TextCodec(std::unique_ptr<model::Tokenizer> tokenizer) : tokenizer_(std::move(tokenizer)) {}

  // tokenizer_json of assay_engine_config: the members of TokenizerSpec by name; "{}" or empty: no tokenizer.
  static Result<TextCodec> open(std::string_view tokenizer_json);

  bool has_tokenizer() const { return tokenizer_ != nullptr; }
  std::optional<int32_t> eod() const;

  // kInvalid for text that is not UTF-8 or that the tokenizer refuses, kUnsupported without a tokenizer.
  Result<std::vector<int32_t>> encode(std::string_view prompt) const;

  // The first `<SPECIAL_n>` in a text, as the tokenizer names special tokens, that it does not have: encode would take
  // its letters one by one. nullopt: there is none.
  std::optional<std::string> unknown_special(std::string_view text) const;

  // Text of ids with special tokens left out. Ids that only the padded vocabulary has become U+FFFD. nullopt without a
  // tokenizer.
  std::optional<std::string> decode(std::span<const int32_t> ids) const;

  // Text of `ids` (prompt and generated; trailing EODs are left out) from code point count(prompt) on.
  std::optional<GeneratedText> generated(std::string_view prompt, std::span<const int32_t> ids) const;

  // Text of one id alone, special tokens as their names; nullopt where it has none.
  std::optional<std::string> token(int32_t id) const;

 private:
  std::unique_ptr<model::Tokenizer> tokenizer_;
};

}  // namespace assay::engines
