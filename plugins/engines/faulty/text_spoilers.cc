// Faults in the text of a result, all of them before its first blank line: what lies after it is free to differ where
// a text is a known completion, or ends early (DESIGN 6).
#include <cctype>

#include "core/golden/text.h"
#include "plugins/engines/faulty/spoil.h"

namespace assay::engines {
namespace {

using Where = std::optional<std::string>;

// Number of code points before the first blank line.
size_t judged(const std::string& text) {
  return text::count(std::string_view(text).substr(0, text::first_blank_line(text)));
}

std::string character_at(size_t index) { return "character " + std::to_string(index); }

Where truncate(EngineResult* result, const Spoil& spoil) {
  if (!result->text || judged(*result->text) < 2) return std::nullopt;
  const size_t whole = spoil.places.seeded() ? judged(*result->text) : text::count(*result->text);
  const size_t kept = spoil.places.seeded() ? 1 + spoil.places.pick(whole - 1) : whole / 2;
  result->text->resize(text::offset_of(*result->text, kept));
  return std::to_string(kept) + " characters kept";
}

Where lose_character(EngineResult* result, const Spoil& spoil) {
  if (!result->text || judged(*result->text) < 2) return std::nullopt;
  const size_t index = spoil.places.pick(judged(*result->text));
  const size_t offset = text::offset_of(*result->text, index);
  result->text->erase(offset, text::offset_of(*result->text, index + 1) - offset);
  return character_at(index);
}

Where break_utf8(EngineResult* result, const Spoil& spoil) {
  if (!result->text || judged(*result->text) == 0) return std::nullopt;
  const size_t index = spoil.places.pick(judged(*result->text));
  (*result->text)[text::offset_of(*result->text, index)] = '\xFF';
  return character_at(index);
}

Where lose_space(EngineResult* result, const Spoil& /*spoil*/) {
  if (!result->text || !result->text->starts_with(' ')) return std::nullopt;
  result->text->erase(0, 1);
  return "";
}

struct Word {
  size_t begin = 0;
  size_t size = 0;
};

Where change_word(EngineResult* result, const Spoil& spoil) {
  if (!result->text) return std::nullopt;
  const std::string& text = *result->text;
  const size_t end = text::first_blank_line(text);
  std::vector<Word> words;
  const auto is_letter = [&](size_t i) { return std::isalpha(static_cast<unsigned char>(text[i])) != 0; };
  for (size_t i = 0; i < end; ++i) {
    if (!is_letter(i)) continue;
    Word word{i, 0};
    while (i < end && is_letter(i)) ++i;
    word.size = i - word.begin;
    if (word.size >= 3) words.push_back(word);
  }
  if (words.empty()) return std::nullopt;
  const Word word = words[spoil.places.pick(words.size())];
  const std::string old = text.substr(word.begin, word.size);
  result->text->replace(word.begin, word.size, old == "assay" ? "essay" : "assay");
  return "'" + old + "' at byte " + std::to_string(word.begin);
}

}  // namespace

Spoiler text_spoiler(Fault fault) {
  switch (fault) {
    case Fault::kTruncatedText:
      return truncate;
    case Fault::kLostCharacter:
      return lose_character;
    case Fault::kInvalidUtf8:
      return break_utf8;
    case Fault::kLostLeadingSpace:
      return lose_space;
    case Fault::kChangedWord:
      return change_word;
    default:
      return nullptr;
  }
}

}  // namespace assay::engines
