#include "backends/model/tokenizer/tokenizer.h"

#include <algorithm>
#include <limits>

#include "backends/model/tokenizer/null_tokenizer.h"
#include "backends/model/tokenizer/tik_tokenizer.h"
#include "backends/model/tokenizer/utf8.h"

namespace assay::model {

Result<std::unique_ptr<Tokenizer>> open_tokenizer(const TokenizerSpec& spec) {
  if (spec.type == "TikTokenizer") return open_tik_tokenizer(spec);
  if (spec.type == "NullTokenizer") return open_null_tokenizer(spec);
  return unsupported("--tokenizer-type: " + utf8::quote(spec.type) +
                     " is not supported, expected TikTokenizer or NullTokenizer");
}

Result<std::vector<int32_t>> encode_prompt(const Tokenizer& tokenizer, std::string_view text) {
  Result<std::vector<int32_t>> ids = tokenizer.encode(text);
  const std::optional<int32_t> bos = tokenizer.info().bos;
  if (ids && bos) {
    const auto first = std::find_if(ids->begin(), ids->end(), [&](int32_t id) { return id != *bos; });
    ids->erase(ids->begin(), first);
  }
  return ids;
}

Result<int64_t> padded_vocab_size(int64_t vocab_size, int64_t divisible_by, int64_t tensor_parallel_size) {
  constexpr int64_t kMax = std::numeric_limits<int32_t>::max();
  const auto in_range = [](int64_t value) { return value >= 1 && value <= kMax; };
  if (!in_range(vocab_size) || !in_range(divisible_by) || !in_range(tensor_parallel_size)) {
    return invalid("padded vocabulary: vocab size " + std::to_string(vocab_size) + ", --make-vocab-size-divisible-by " +
                   std::to_string(divisible_by) + " and tensor parallel size " + std::to_string(tensor_parallel_size) +
                   ": expected positive 32-bit numbers");
  }
  const int64_t multiple = divisible_by * tensor_parallel_size;
  return (vocab_size + multiple - 1) / multiple * multiple;
}

}  // namespace assay::model
