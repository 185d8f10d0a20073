// Code points of UTF-8 text that may be ill-formed: an ill-formed byte counts as one code point, so that positions
// exist in any byte string. Pure functions without state.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace assay::text {

struct CodePoint {
  char32_t value = 0xFFFD;  // U+FFFD where valid is false
  size_t length = 1;        // bytes, >= 1
  bool valid = false;
};

// What stands at `offset` < text.size().
CodePoint decode(std::string_view text, size_t offset);

// Byte offset of the first byte that is no UTF-8; nullopt: there is none.
std::optional<size_t> ill_formed(std::string_view text);

// Number of code points.
size_t count(std::string_view text);

// Byte offset of code point `index`; text.size() when there are fewer.
size_t offset_of(std::string_view text, size_t index);

// The first `length` code points.
std::string_view prefix(std::string_view text, size_t length);

// Byte offset of the first code point where the two differ: the length of their common prefix, never inside a
// code point of either.
size_t common_prefix(std::string_view a, std::string_view b);

// Byte offset of the first blank line ("\n\n") that follows something other than white space; text.size() if none.
size_t first_blank_line(std::string_view text);

// Code points that show nothing, or change the order of what stands around them.
bool invisible(char32_t c);

// True when nothing of it can be seen: white space of any script, control and invisible characters; empty, too.
bool blank(std::string_view text);

// One printable line: control characters as \n, \t, \r, \xNN; ill-formed bytes as \xNN; invisible and bidirectional
// characters as \uNNNN; backslash and quotes stay.
std::string printable(std::string_view text);

// printable, in double quotes, cut to `limit` code points with "..." at the cut.
std::string quoted(std::string_view text, size_t limit);

// printable surroundings of the code point at byte `offset`: up to `before` code points, then "|", then up to `after`;
// "..." where something was cut; in double quotes.
std::string around(std::string_view text, size_t offset, size_t before, size_t after);

// repr(value) of Python: the shortest spelling that reads back, "1e-05", "61232738304.0", "nan", "-inf".
std::string python_repr(double value);

}  // namespace assay::text
