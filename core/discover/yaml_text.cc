#include "core/discover/yaml_text.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>

namespace assay::discover {
namespace {

bool yaml_allows(char32_t c) {
  return c == '\t' || c == '\n' || c == '\r' || (c >= 0x20 && c <= 0x7e) || c == 0x85 || (c >= 0xa0 && c < 0xfffe) ||
         c >= 0x10000;
}

// Place of byte `at`, counting LF, CR and CR LF as one line end each.
std::string place_of(const std::string& file, std::string_view text, size_t at) {
  int line = 1;
  size_t start = 0;
  for (size_t i = 0; i < at; ++i) {
    const bool cr = text[i] == '\r' && !(i + 1 < text.size() && text[i + 1] == '\n');
    if (text[i] != '\n' && !cr) continue;
    ++line;
    start = i + 1;
  }
  return at_place(file, line, static_cast<int>(at - start + 1));
}

}  // namespace

size_t utf8_sequence(std::string_view text, size_t at, char32_t& code_point) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byte(at);
  if (lead < 0x80) {
    code_point = lead;
    return 1;
  }
  const size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || at + length > text.size()) return 0;
  char32_t value = lead & (0x7f >> length);
  for (size_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xc0) != 0x80) return 0;
    value = value << 6 | (byte(at + i) & 0x3f);
  }
  constexpr char32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  if (value < kSmallest[length] || value > 0x10ffff || (value >= 0xd800 && value <= 0xdfff)) return 0;
  code_point = value;
  return length;
}

std::string at_place(const std::string& file, int line, int column) {
  return file + ":" + std::to_string(line) + ":" + std::to_string(column) + ": ";
}

Status prepare_yaml_text(std::string& text, const std::string& file) {
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff") ||
      text.starts_with(std::string_view("\0\0\xfe\xff", 4))) {
    return invalid(at_place(file, 1, 1) + "UTF-16 or UTF-32 text: save the file as UTF-8");
  }
  if (text.starts_with("\xef\xbb\xbf")) text.erase(0, 3);
  bool carriage_return = false;
  for (size_t i = 0; i < text.size();) {
    const auto c = static_cast<uint8_t>(text[i]);
    if (c >= 0x20 && c < 0x7f) {
      ++i;
      continue;
    }
    char32_t code_point = 0;
    const size_t length = utf8_sequence(text, i, code_point);
    char seen[64];
    if (length == 0) {
      std::snprintf(seen, sizeof seen, "byte 0x%02x is not valid UTF-8: save the file as UTF-8", c);
      return invalid(place_of(file, text, i) + seen);
    }
    if (!yaml_allows(code_point)) {
      std::snprintf(seen, sizeof seen, "character U+%04X is not allowed in YAML", static_cast<unsigned>(code_point));
      return invalid(place_of(file, text, i) + seen);
    }
    carriage_return |= c == '\r';
    i += length;
  }
  if (!carriage_return) return {};
  size_t out = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\r' && i + 1 < text.size() && text[i + 1] == '\n') continue;
    text[out++] = text[i] == '\r' ? '\n' : text[i];
  }
  text.resize(out);
  return {};
}

}  // namespace assay::discover
