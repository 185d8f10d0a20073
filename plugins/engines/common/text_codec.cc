#include "plugins/engines/common/text_codec.h"

#include <utility>

#include "backends/model/tokenizer/utf8.h"
#include "plugins/engines/common/options_json.h"

namespace assay::engines {

Result<TextCodec> TextCodec::open(std::string_view tokenizer_json) {
  model::TokenizerSpec spec;
  std::string path;
  std::optional<int64_t> num_special;
  OptionsReader reader(tokenizer_json, "tokenizer description");
  reader.string("type", &spec.type);
  reader.string("model", &path);
  reader.string("pattern", &spec.pattern);
  reader.integer("vocab_size", 0, INT32_MAX, &spec.vocab_size);
  reader.integer("num_special", 0, INT32_MAX, &num_special);
  reader.strings("special_tokens", &spec.special_tokens);
  reader.integer("null_eod_id", INT32_MIN, INT32_MAX, &spec.null_eod_id);
  if (Status status = reader.finish(); !status.ok()) return status;
  if (spec.type.empty()) return TextCodec(nullptr);
  spec.model = path;
  if (num_special) spec.num_special = *num_special;
  Result<std::unique_ptr<model::Tokenizer>> tokenizer = model::open_tokenizer(spec);
  if (!tokenizer) return tokenizer.status();
  return TextCodec(*std::move(tokenizer));
}

std::optional<int32_t> TextCodec::eod() const { return tokenizer_ ? tokenizer_->info().eod : std::nullopt; }

Result<std::vector<int32_t>> TextCodec::encode(std::string_view prompt) const {
  if (!tokenizer_) return unsupported("prompt is text, but there is no tokenizer; give token ids or --tokenizer-type");
  return model::encode_prompt(*tokenizer_, prompt);
}

std::optional<std::string> TextCodec::unknown_special(std::string_view text) const {
  constexpr std::string_view kBegin = "<SPECIAL_";
  for (size_t at = text.find(kBegin); tokenizer_ && at != std::string_view::npos; at = text.find(kBegin, at + 1)) {
    const size_t end = text.find_first_not_of("0123456789", at + kBegin.size());
    if (end == std::string_view::npos || end == at + kBegin.size() || text[end] != '>') continue;
    const std::string_view name = text.substr(at, end + 1 - at);
    const Result<std::vector<int32_t>> ids = model::encode_prompt(*tokenizer_, name);
    if (!ids || ids->size() != 1) return std::string(name);
  }
  return std::nullopt;
}

std::optional<std::string> TextCodec::decode(std::span<const int32_t> ids) const {
  if (!tokenizer_) return std::nullopt;
  std::string text;
  const auto known = [&](int32_t id) { return id >= 0 && id < tokenizer_->info().vocab_size; };
  while (!ids.empty()) {
    size_t length = 0;
    while (length < ids.size() && known(ids[length])) ++length;
    if (length == 0) {
      utf8::append(text, utf8::kReplacement);
      ids = ids.subspan(1);
      continue;
    }
    Result<std::string> part = tokenizer_->decode(ids.first(length), model::SpecialTokens::kDrop);
    if (!part) return std::nullopt;  // cannot be: every id is known
    text += *part;
    ids = ids.subspan(length);
  }
  return text;
}

std::optional<GeneratedText> TextCodec::generated(std::string_view prompt, std::span<const int32_t> ids) const {
  while (!ids.empty() && eod() && ids.back() == *eod()) ids = ids.first(ids.size() - 1);
  const std::optional<std::string> all = decode(ids);
  if (!all) return std::nullopt;
  const size_t cut = utf8::offset_of(*all, utf8::count(prompt));
  return GeneratedText{all->substr(cut), std::string_view(*all).substr(0, cut) == prompt};
}

std::optional<std::string> TextCodec::token(int32_t id) const {
  if (!tokenizer_) return std::nullopt;
  Result<std::string> text = tokenizer_->token_text(id);
  if (!text) return std::nullopt;
  return *std::move(text);
}

}  // namespace assay::engines
