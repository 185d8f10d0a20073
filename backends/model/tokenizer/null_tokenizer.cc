#include "backends/model/tokenizer/null_tokenizer.h"

#include <charconv>
#include <limits>

#include "backends/model/tokenizer/utf8.h"

namespace assay::model {
namespace {

class NullTokenizer final : public Tokenizer {
 public:
  NullTokenizer(int32_t vocab_size, int32_t eod)
      : info_{.description = "NullTokenizer, " + std::to_string(vocab_size) + " ids",
              .vocab_size = vocab_size,
              .bos = std::nullopt,
              .eod = eod} {}

  const TokenizerInfo& info() const override { return info_; }

  Result<std::vector<int32_t>> encode(std::string_view text) const override {
    if (const Status status = utf8::validate(text); !status.ok()) return status;
    std::vector<int32_t> ids;
    for (size_t offset = 0; offset <= text.size();) {
      const std::string_view word = text.substr(offset, text.find(' ', offset) - offset);
      const Result<int32_t> id = parse(word, offset);
      if (!id) return id.status();
      ids.push_back(*id);
      offset += word.size() + 1;
    }
    return ids;
  }

  Result<std::string> decode(std::span<const int32_t> ids, SpecialTokens) const override {
    std::string text;
    for (size_t i = 0; i < ids.size(); ++i) {
      if (ids[i] < 0 || ids[i] >= info_.vocab_size) {
        return invalid("id " + std::to_string(ids[i]) + " at index " + std::to_string(i) + range());
      }
      if (i > 0) text += ' ';
      text += std::to_string(ids[i]);
    }
    return text;
  }

 private:
  std::string range() const { return ": expected 0 to " + std::to_string(info_.vocab_size - 1) + " (NullTokenizer)"; }

  Result<int32_t> parse(std::string_view word, size_t offset) const {
    const std::string at = " at byte offset " + std::to_string(offset);
    if (word.empty()) {
      return invalid("NullTokenizer text: no id" + at + ", expected decimal ids separated by single blanks");
    }
    if (word.find_first_not_of("0123456789", word[0] == '-' ? 1 : 0) != std::string_view::npos || word == "-") {
      return invalid("NullTokenizer text: " + utf8::quote(word) + at +
                     " is not an id, expected decimal ids separated by single blanks");
    }
    int32_t id = -1;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), id);
    if (error != std::errc() || id < 0 || id >= info_.vocab_size) {
      return invalid("id " + std::string(word.substr(0, 40)) + at + range());
    }
    return id;
  }

  TokenizerInfo info_;
};

}  // namespace

Result<std::unique_ptr<Tokenizer>> open_null_tokenizer(const TokenizerSpec& spec) {
  const int64_t vocab_size = spec.vocab_size.value_or(0);
  if (vocab_size < 1 || vocab_size > std::numeric_limits<int32_t>::max()) {
    return invalid("NullTokenizer: --vocab-size is " + (spec.vocab_size ? std::to_string(vocab_size) : "not set") +
                   ", expected a positive 32-bit number");
  }
  const int64_t eod = spec.null_eod_id.value_or(vocab_size - 1);
  if (eod < 0 || eod >= vocab_size) {
    return invalid("NullTokenizer: --null-tokenizer-eod-id " + std::to_string(eod) + ": expected 0 to " +
                   std::to_string(vocab_size - 1));
  }
  return std::unique_ptr<Tokenizer>(
      std::make_unique<NullTokenizer>(static_cast<int32_t>(vocab_size), static_cast<int32_t>(eod)));
}

}  // namespace assay::model
