// JSON at the level of characters: what nlohmann/json does not read (bare NaN and infinities) or write our way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace assay::json {

// A bare NaN or infinity, known by its place among the numbers of a document.
struct NonFinite {
  uint64_t ordinal;  // 0 = the first number of the document
  double value;
};

// A document in which every bare NaN, Infinity and -Infinity was overwritten by "0" and blanks: offsets stay exact.
struct Blanked {
  std::string storage;               // holds the changed copy; empty when nothing had to change
  std::vector<NonFinite> nonfinite;  // ascending ordinal

  std::string_view text(std::string_view original) const { return storage.empty() ? original : storage; }
};
Blanked blank_nonfinite(std::string_view document);

// What writes, copies or compares a document goes down it by recursion: readers of documents that others made refuse
// one whose lists and objects lie deeper in each other.
inline constexpr size_t kDeepest = 256;

// More than `most` lists and objects are open at once somewhere in the document, which need not be valid.
bool deeper_than(std::string_view document, size_t most);

// Appends `text` as a JSON string, all ASCII: non-ASCII as \uXXXX (surrogate pairs above U+FFFF), ill-formed UTF-8 as
// \ufffd.
void append_string(std::string& out, std::string_view text);

// Appends the shortest spelling that reads back to the same bits, always recognisable as a float ("1.0", "-0.0",
// "1e-05"); NaN, Infinity, -Infinity bare.
void append_double(std::string& out, double value);

void append_integer(std::string& out, int64_t value);

}  // namespace assay::json
