#include "backends/model/tokenizer/utf8.h"

#include <cstdint>
#include <cstdio>

namespace assay::utf8 {
namespace {

uint8_t byte_at(std::string_view text, size_t offset) { return static_cast<uint8_t>(text[offset]); }

bool is_continuation(uint8_t byte) { return (byte & 0xC0) == 0x80; }

// Bytes of a sequence with this lead byte, and the admitted range of its second byte (table 3-7 of the standard).
// length 0: never a lead byte.
struct Lead {
  size_t length;
  uint8_t second_first;
  uint8_t second_last;
};

Lead classify(uint8_t byte) {
  if (byte < 0x80) return {1, 0, 0};
  if (byte < 0xC2) return {0, 0, 0};
  if (byte < 0xE0) return {2, 0x80, 0xBF};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};
  if (byte == 0xED) return {3, 0x80, 0x9F};
  if (byte < 0xF0) return {3, 0x80, 0xBF};
  if (byte == 0xF0) return {4, 0x90, 0xBF};
  if (byte < 0xF4) return {4, 0x80, 0xBF};
  if (byte == 0xF4) return {4, 0x80, 0x8F};
  return {0, 0, 0};
}

bool is_surrogate(std::string_view text, size_t offset) {
  return text.size() - offset >= 3 && byte_at(text, offset) == 0xED && byte_at(text, offset + 1) >= 0xA0 &&
         is_continuation(byte_at(text, offset + 1)) && is_continuation(byte_at(text, offset + 2));
}

}  // namespace

Decoded decode_at(std::string_view text, size_t offset) {
  const uint8_t first = byte_at(text, offset);
  if (first < 0x80) return {first, 1, true};
  const Lead lead = classify(first);
  if (lead.length == 0) return {kReplacement, 1, false};
  char32_t code_point = first & (0x7FU >> lead.length);
  for (size_t i = 1; i < lead.length; ++i) {
    if (offset + i == text.size()) return {kReplacement, i, false};
    const uint8_t byte = byte_at(text, offset + i);
    const bool fits = i == 1 ? byte >= lead.second_first && byte <= lead.second_last : is_continuation(byte);
    if (!fits) return {kReplacement, i, false};
    code_point = (code_point << 6) | (byte & 0x3FU);
  }
  return {code_point, lead.length, true};
}

std::optional<size_t> first_invalid(std::string_view text) {
  for (size_t offset = 0; offset < text.size();) {
    const Decoded decoded = decode_at(text, offset);
    if (!decoded.well_formed) return offset;
    offset += decoded.length;
  }
  return std::nullopt;
}

Status validate(std::string_view text) {
  const std::optional<size_t> offset = first_invalid(text);
  if (!offset) return {};
  char what[64];
  if (is_surrogate(text, *offset)) {
    const unsigned unit = 0xD000U | ((byte_at(text, *offset + 1) & 0x3FU) << 6) | (byte_at(text, *offset + 2) & 0x3FU);
    std::snprintf(what, sizeof what, "a lone surrogate U+%04X", unit);
  } else {
    std::snprintf(what, sizeof what, "byte 0x%02X", byte_at(text, *offset));
  }
  return invalid("invalid UTF-8 at byte offset " + std::to_string(*offset) + ": " + what +
                 ", expected well-formed UTF-8; convert the text to UTF-8");
}

std::string replace_invalid(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t offset = 0; offset < text.size();) {
    const Decoded decoded = decode_at(text, offset);
    if (decoded.well_formed) {
      out.append(text.substr(offset, decoded.length));
    } else {
      append(out, kReplacement);
    }
    offset += decoded.length;
  }
  return out;
}

void append(std::string& text, char32_t code_point) {
  const auto put = [&text](char32_t byte) { text.push_back(static_cast<char>(byte)); };
  if (code_point < 0x80) return put(code_point);
  if (code_point < 0x800) {
    put(0xC0 | (code_point >> 6));
  } else {
    if (code_point < 0x10000) {
      put(0xE0 | (code_point >> 12));
    } else {
      put(0xF0 | (code_point >> 18));
      put(0x80 | ((code_point >> 12) & 0x3F));
    }
    put(0x80 | ((code_point >> 6) & 0x3F));
  }
  put(0x80 | (code_point & 0x3F));
}

size_t count(std::string_view valid) {
  size_t n = 0;
  for (const char c : valid) n += !is_continuation(static_cast<uint8_t>(c));
  return n;
}

size_t offset_of(std::string_view valid, size_t index) {
  size_t offset = 0;
  for (; index > 0 && offset < valid.size(); --index) {
    ++offset;
    while (offset < valid.size() && is_continuation(byte_at(valid, offset))) ++offset;
  }
  return offset;
}

std::string_view slice(std::string_view valid, size_t first, size_t count) {
  const std::string_view tail = valid.substr(offset_of(valid, first));
  return tail.substr(0, offset_of(tail, count));
}

std::string quote(std::string_view text) {
  constexpr size_t kShown = 40;
  const std::string valid = replace_invalid(text.substr(0, 4 * kShown + 4));
  const std::string_view shown = slice(valid, 0, kShown);
  std::string out = "'";
  for (const char c : shown) {
    const auto byte = static_cast<uint8_t>(c);
    char hex[8];
    std::snprintf(hex, sizeof hex, "\\x%02X", byte);
    out += byte < 0x20 || byte == 0x7F ? hex : std::string(1, c);
  }
  return out + (shown.size() < valid.size() ? "...'" : "'");
}

}  // namespace assay::utf8
