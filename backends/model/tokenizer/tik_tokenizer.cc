#include "backends/model/tokenizer/tik_tokenizer.h"

#include <limits>

#include "backends/model/tokenizer/bpe.h"
#include "backends/model/tokenizer/pre_tokenizer.h"
#include "backends/model/tokenizer/special_set.h"
#include "backends/model/tokenizer/tik_vocab.h"
#include "backends/model/tokenizer/utf8.h"

namespace assay::model {
namespace {

constexpr int64_t kDefaultVocabSize = 131072;
constexpr size_t kMaxTextBytes = 1UL << 30;

class TikTokenizer final : public Tokenizer {
 public:
  TikTokenizer(std::string description, PreTokenizer pre_tokenizer, SpecialSet special, BytePairTable table)
      : pre_tokenizer_(std::move(pre_tokenizer)), special_(std::move(special)), table_(std::move(table)) {
    info_ = {.description = std::move(description),
             .vocab_size = special_.size() + static_cast<int32_t>(table_.size()),
             .bos = special_.id("<s>"),
             .eod = special_.id("</s>")};
  }

  const TokenizerInfo& info() const override { return info_; }

  Result<std::vector<int32_t>> encode(std::string_view text) const override {
    if (text.size() > kMaxTextBytes) {
      return exhausted("text of " + std::to_string(text.size()) + " bytes: expected at most 1 GiB; cut it");
    }
    if (const Status status = utf8::validate(text); !status.ok()) return status;
    std::vector<int32_t> ids;
    for (size_t begin = 0; begin < text.size();) {
      const std::optional<SpecialSet::Match> special = special_.find(text, begin);
      const size_t end = special ? special->begin : text.size();
      if (const Status status = encode_ordinary(text.substr(begin, end - begin), ids); !status.ok()) return status;
      if (special) ids.push_back(special->id);
      begin = special ? special->end : end;
    }
    return ids;
  }

  Result<std::string> decode(std::span<const int32_t> ids, SpecialTokens special) const override {
    std::string bytes;
    for (size_t i = 0; i < ids.size(); ++i) {
      if (ids[i] < 0 || ids[i] >= info_.vocab_size) {
        return invalid("id " + std::to_string(ids[i]) + " at index " + std::to_string(i) + ": expected 0 to " +
                       std::to_string(info_.vocab_size - 1) + " (" + info_.description + ")");
      }
      if (ids[i] >= special_.size()) {
        bytes += table_.bytes(ids[i] - special_.size());
      } else if (special == SpecialTokens::kKeep) {
        bytes += special_.name(ids[i]);
      }
    }
    return utf8::replace_invalid(bytes);
  }

 private:
  // valid: no special tokens in it.
  Status encode_ordinary(std::string_view valid, std::vector<int32_t>& ids) const {
    const Result<std::vector<size_t>> ends = pre_tokenizer_.split(valid);
    if (!ends) return ends.status();
    size_t begin = 0;
    for (const size_t end : *ends) {
      table_.encode(valid.substr(begin, end - begin), special_.size(), ids);
      begin = end;
    }
    return {};
  }

  PreTokenizer pre_tokenizer_;
  SpecialSet special_;
  BytePairTable table_;
  TokenizerInfo info_;
};

}  // namespace

Result<std::unique_ptr<Tokenizer>> open_tik_tokenizer(const TokenizerSpec& spec) {
  const int64_t vocab_size = spec.vocab_size.value_or(0) == 0 ? kDefaultVocabSize : *spec.vocab_size;
  if (vocab_size < 0 || vocab_size > std::numeric_limits<int32_t>::max()) {
    return invalid("--vocab-size " + std::to_string(vocab_size) + ": expected a positive 32-bit number");
  }
  if (spec.num_special >= vocab_size) {
    return invalid("--tiktoken-num-special-tokens " + std::to_string(spec.num_special) +
                   ": expected less than the vocabulary size " + std::to_string(vocab_size));
  }
  const std::string pattern = spec.pattern.empty() ? "v2" : spec.pattern;
  Result<PreTokenizer> pre_tokenizer = PreTokenizer::open(pattern);
  if (!pre_tokenizer) return pre_tokenizer.status();
  Result<SpecialSet> special = SpecialSet::make(spec.special_tokens, spec.num_special);
  if (!special) return special.status();
  Result<BytePairTable> table = read_tik_vocab(spec.model, vocab_size - spec.num_special);
  if (!table) return table.status();
  std::string description = "TikTokenizer " + spec.model.filename().string() + ", pattern " + pattern + ", " +
                            std::to_string(vocab_size) + " ids, " + std::to_string(spec.num_special) +
                            " of them special";
  return std::unique_ptr<Tokenizer>(std::make_unique<TikTokenizer>(std::move(description), *std::move(pre_tokenizer),
                                                                   *std::move(special), *std::move(table)));
}

}  // namespace assay::model
