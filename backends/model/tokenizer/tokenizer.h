// Text to token ids and back, as Megatron-LM's tokenizers do it: the interface and the factory.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/include/assay/status.h"

namespace assay::model {

struct TokenizerInfo {
  std::string description;     // one line for reports
  int32_t vocab_size = 0;      // ids are 0 .. vocab_size - 1 (unpadded)
  std::optional<int32_t> bos;  // begin of sequence
  std::optional<int32_t> eod;  // end of document: generation stops here
};

enum class SpecialTokens { kKeep, kDrop };

// Immutable after open_tokenizer: every method may be called from any thread at once.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  virtual const TokenizerInfo& info() const = 0;

  // text: UTF-8; invalid UTF-8 is kInvalid with the byte offset. Special tokens in the text become their ids; nothing
  // is added in front or behind. Empty text gives no ids.
  virtual Result<std::vector<int32_t>> encode(std::string_view text) const = 0;

  // The tokens' bytes in a row, read as UTF-8; ill-formed sequences become U+FFFD. kDrop leaves special tokens out.
  // kInvalid naming the id and its place for an id outside of 0 .. vocab_size - 1 (a padded vocabulary has such ids).
  virtual Result<std::string> decode(std::span<const int32_t> ids, SpecialTokens special) const = 0;

  // The text of one id alone, special tokens as their strings, partial UTF-8 as U+FFFD: the key of a top-n dictionary.
  // Several ids may have one text. Fails as decode does.
  Result<std::string> token_text(int32_t id) const { return decode({&id, 1}, SpecialTokens::kKeep); }
};

// The tokenizer arguments of MODEL_ARGS (megatron.md sections 2 and 11).
struct TokenizerSpec {
  std::string type;                   // --tokenizer-type: TikTokenizer or NullTokenizer
  std::filesystem::path model;        // --tokenizer-model: the vocabulary file (TikTokenizer)
  std::string pattern = "v2";         // --tiktoken-pattern: v1 or v2 (TikTokenizer); empty is v2
  std::optional<int64_t> vocab_size;  // --vocab-size; unset or 0: 131072 for TikTokenizer, refused by NullTokenizer
  int64_t num_special = 1000;         // --tiktoken-num-special-tokens
  std::vector<std::string> special_tokens;  // --tiktoken-special-tokens; empty: <unk> <s> </s> <mask> <pad> <cls> <sep>
  std::optional<int64_t> null_eod_id;       // --null-tokenizer-eod-id; unset: vocab_size - 1
};

// kUnsupported for another type (the supported ones are named), kNotFound for a missing file, kInvalid for a broken
// vocabulary or arguments that contradict each other.
Result<std::unique_ptr<Tokenizer>> open_tokenizer(const TokenizerSpec& spec);

// A prompt as the engines take it: encoded, and every leading BOS id removed (megatron.md section 11).
Result<std::vector<int32_t>> encode_prompt(const Tokenizer& tokenizer, std::string_view text);

// Rows of the embedding table: vocab_size rounded up to a multiple of divisible_by * tensor_parallel_size.
// All three must be positive, else kInvalid.
Result<int64_t> padded_vocab_size(int64_t vocab_size, int64_t divisible_by, int64_t tensor_parallel_size);

}  // namespace assay::model
