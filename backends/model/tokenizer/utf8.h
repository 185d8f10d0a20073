// UTF-8 by the letter of the standard: shortest forms only, no surrogates, nothing above U+10FFFF.
// Pure functions without state: safe from any thread. "valid" in a parameter's name is a demand on the caller; text
// from outside goes through validate first.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "core/include/assay/status.h"

namespace assay::utf8 {

inline constexpr char32_t kReplacement = 0xFFFD;

// What stands at one place of a byte string.
struct Decoded {
  char32_t code_point = kReplacement;  // kReplacement where well_formed is false
  size_t length = 0;                   // bytes, >= 1; where ill-formed: the maximal subpart of Unicode 3.9 (1 to 3)
  bool well_formed = false;
};

// Input: text, and offset < text.size(). Any bytes are admitted.
Decoded decode_at(std::string_view text, size_t offset);

// Byte offset of the first ill-formed sequence, nullopt when there is none.
std::optional<size_t> first_invalid(std::string_view text);

// Ok, or kInvalid with the byte offset and what stands there (a surrogate is named as such).
Status validate(std::string_view text);

// Each maximal subpart of an ill-formed sequence becomes one U+FFFD, as bytes.decode("utf-8", "replace") of Python
// does.
std::string replace_invalid(std::string_view text);

// Appends one code point (a scalar value: not a surrogate, <= U+10FFFF).
void append(std::string& text, char32_t code_point);

// Number of code points.
size_t count(std::string_view valid);

// Byte offset of code point `index`; valid.size() when there are no more than `index` code points.
size_t offset_of(std::string_view valid, size_t index);

// The code points first, first + 1, ... (at most `count` of them) as a view into `valid`, cut to what there is.
std::string_view slice(std::string_view valid, size_t first, size_t count = std::string_view::npos);

// For messages: 'text' in single quotes on one line, at most 40 code points and then "...", control characters as \xNN.
// Any bytes are admitted (replaced as replace_invalid does).
std::string quote(std::string_view text);

}  // namespace assay::utf8
