#include "plugins/engines/buffered/stop_words.h"

#include <algorithm>
#include <string_view>

namespace assay::engines {
namespace {

bool is_written_as_special(std::string_view word) {
  if (word.size() < 3 || word.front() != '<' || word.back() != '>') return false;
  const std::string_view inner = word.substr(1, word.size() - 2);
  if (inner.size() > 2 && inner.front() == '|' && inner.back() == '|') return inner.find(' ') == std::string::npos;
  return std::all_of(inner.begin(), inner.end(),
                     [](char c) { return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; });
}

}  // namespace

Result<std::vector<std::vector<int32_t>>> encode_stop_words(const std::vector<std::string>& words,
                                                            const TextCodec& codec) {
  std::vector<std::vector<int32_t>> encoded;
  for (const std::string& word : words) {
    const std::string name = "stop word '" + word + "'";
    Result<std::vector<int32_t>> ids = codec.encode(word);
    if (!ids) return ids.status().with(name);
    if (ids->empty()) return invalid(name + " has no tokens; leave it out");
    if (is_written_as_special(word) && ids->size() != 1) {
      return invalid(name + " is written like a special token, but the tokenizer has none of this name (it became " +
                     std::to_string(ids->size()) + " tokens); name one that it has");
    }
    encoded.push_back(*std::move(ids));
  }
  return encoded;
}

}  // namespace assay::engines
