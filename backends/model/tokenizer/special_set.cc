#include "backends/model/tokenizer/special_set.h"

#include <algorithm>
#include <numeric>

#include "backends/model/tokenizer/utf8.h"

namespace assay::model {
namespace {

const char* const kRequired[] = {"<unk>", "<s>", "</s>", "<mask>", "<pad>", "<cls>", "<sep>"};

}  // namespace

SpecialSet::SpecialSet(std::vector<std::string> names) : names_(std::move(names)), sorted_(names_.size()) {
  std::iota(sorted_.begin(), sorted_.end(), 0);
  std::sort(sorted_.begin(), sorted_.end(), [this](int32_t a, int32_t b) { return name(a) < name(b); });
  for (uint32_t i = 0; i < sorted_.size(); ++i) {
    const std::string& text = name(sorted_[i]);
    if (text.empty()) continue;  // refused by make
    Range& range = by_first_[static_cast<uint8_t>(text[0])];
    if (range.end == 0) range.begin = i;
    range.end = i + 1;
  }
}

Result<SpecialSet> SpecialSet::make(std::vector<std::string> names, int64_t count) {
  if (names.empty()) names.assign(std::begin(kRequired), std::end(kRequired));
  if (static_cast<int64_t>(names.size()) > count) {
    return invalid("--tiktoken-num-special-tokens " + std::to_string(count) + ": expected at least " +
                   std::to_string(names.size()) + ", one for each named special token");
  }
  for (const char* required : kRequired) {
    if (std::find(names.begin(), names.end(), required) == names.end()) {
      return invalid("special tokens: " + std::string(required) + " is missing; add it to the list");
    }
  }
  for (auto i = static_cast<int64_t>(names.size()); i < count; ++i) {
    names.push_back("<SPECIAL_" + std::to_string(i) + ">");
  }
  SpecialSet set(std::move(names));
  for (size_t i = 0; i < set.sorted_.size(); ++i) {
    const std::string& text = set.name(set.sorted_[i]);
    if (text.empty()) return invalid("special tokens: one is empty, expected at least one character; remove it");
    if (i == 0) continue;
    const std::string& before = set.name(set.sorted_[i - 1]);
    if (before == text) return invalid("special tokens: " + utf8::quote(text) + " is there twice; remove one");
    if (text.starts_with(before)) {
      return unsupported("special tokens: " + utf8::quote(before) + " begins " + utf8::quote(text) +
                         "; rename one of them");
    }
  }
  return set;
}

int32_t SpecialSet::id(std::string_view name) const {
  return static_cast<int32_t>(std::find(names_.begin(), names_.end(), name) - names_.begin());
}

std::optional<SpecialSet::Match> SpecialSet::find(std::string_view text, size_t from) const {
  for (size_t offset = from; offset < text.size(); ++offset) {
    if (by_first_[static_cast<uint8_t>(text[offset])].end == 0) continue;
    if (const std::optional<Match> match = match_at(text, offset)) return match;
  }
  return std::nullopt;
}

std::optional<SpecialSet::Match> SpecialSet::match_at(std::string_view text, size_t offset) const {
  const Range range = by_first_[static_cast<uint8_t>(text[offset])];
  auto begin = sorted_.begin() + range.begin;
  auto end = sorted_.begin() + range.end;
  // Invariant: the names of begin .. end have the text's first `depth` bytes in common with it, and are all longer, or
  // there is one name, of that length.
  for (size_t depth = 1;; ++depth) {
    if (name(*begin).size() == depth) return Match{offset, offset + depth, *begin};
    if (offset + depth == text.size()) return std::nullopt;
    const auto byte = static_cast<uint8_t>(text[offset + depth]);
    const auto byte_of = [&](int32_t id) { return static_cast<uint8_t>(name(id)[depth]); };
    begin = std::lower_bound(begin, end, byte, [&](int32_t id, uint8_t b) { return byte_of(id) < b; });
    end = std::upper_bound(begin, end, byte, [&](uint8_t b, int32_t id) { return b < byte_of(id); });
    if (begin == end) return std::nullopt;
  }
}

}  // namespace assay::model
