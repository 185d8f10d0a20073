#include "core/golden/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace assay::text {
namespace {

constexpr std::string_view kHex = "0123456789abcdef";

bool is_continuation(unsigned char byte) { return (byte & 0xC0U) == 0x80U; }

void append_byte(std::string& out, unsigned char byte) {
  out += "\\x";
  out += kHex[byte >> 4U];
  out += kHex[byte & 15U];
}

// Byte offset of the code point that ends at `offset` (> 0).
size_t step_back(std::string_view text, size_t offset) {
  const size_t earliest = offset > 4 ? offset - 4 : 0;
  for (size_t start = offset - 1; start + 1 > earliest; --start) {
    const CodePoint point = decode(text, start);
    if (point.valid && start + point.length == offset) return start;
    if (start == 0) break;
  }
  return offset - 1;
}

}  // namespace

CodePoint decode(std::string_view text, size_t offset) {
  const auto lead = static_cast<unsigned char>(text[offset]);
  if (lead < 0x80U) return {lead, 1, true};
  const size_t length = lead >= 0xF0U ? 4 : lead >= 0xE0U ? 3 : 2;
  if (lead < 0xC2U || lead > 0xF4U || offset + length > text.size()) return {};
  char32_t value = lead & (0x7FU >> length);
  for (size_t i = 1; i < length; ++i) {
    const auto byte = static_cast<unsigned char>(text[offset + i]);
    if (!is_continuation(byte)) return {};
    value = (value << 6U) | (byte & 0x3FU);
  }
  constexpr char32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = value >= 0xD800 && value <= 0xDFFF;
  if (value < kSmallest[length] || value > 0x10FFFF || surrogate) return {};
  return {value, length, true};
}

std::optional<size_t> ill_formed(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    if (static_cast<unsigned char>(text[i]) < 0x80) {
      ++i;
      continue;
    }
    const CodePoint point = decode(text, i);
    if (!point.valid) return i;
    i += point.length;
  }
  return std::nullopt;
}

size_t count(std::string_view text) {
  size_t points = 0;
  for (size_t at = 0; at < text.size(); at += decode(text, at).length) ++points;
  return points;
}

size_t offset_of(std::string_view text, size_t index) {
  size_t at = 0;
  for (; index > 0 && at < text.size(); --index) at += decode(text, at).length;
  return at;
}

std::string_view prefix(std::string_view text, size_t length) { return text.substr(0, offset_of(text, length)); }

size_t common_prefix(std::string_view a, std::string_view b) {
  const size_t shorter = std::min(a.size(), b.size());
  const size_t equal = static_cast<size_t>(std::mismatch(a.begin(), a.begin() + shorter, b.begin()).first - a.begin());
  if (equal == a.size() && equal == b.size()) return equal;
  // Back to the start of a code point that reaches past the equal bytes in either text.
  const size_t earliest = equal > 3 ? equal - 3 : 0;
  for (size_t start = earliest; start < equal; ++start) {
    const bool cut_a = decode(a, start).valid && start + decode(a, start).length > equal;
    const bool cut_b = decode(b, start).valid && start + decode(b, start).length > equal;
    if (cut_a || cut_b) return start;
  }
  return equal;
}

size_t first_blank_line(std::string_view text) {
  const size_t ink = text.find_first_not_of(" \t\r\n");
  if (ink == std::string_view::npos) return text.size();
  return std::min(text.find("\n\n", ink), text.size());
}

bool invisible(char32_t c) {
  return (c >= 0x7F && c <= 0x9F) || c == 0xAD || c == 0x61C || c == 0x115F || c == 0x180E ||
         (c >= 0x200B && c <= 0x200F) || (c >= 0x2028 && c <= 0x202E) || (c >= 0x2060 && c <= 0x206F) || c == 0xFEFF ||
         (c >= 0xFFF0 && c <= 0xFFFB) || c == 0xFFFE || c == 0xFFFF || (c >= 0xE0000 && c <= 0xE0FFF);
}

bool blank(std::string_view text) {
  const auto space = [](char32_t c) {  // Unicode's White_Space above U+0020, and letters that are drawn as nothing
    return c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x202F || c == 0x205F || c == 0x2800 ||
           c == 0x3000 || c == 0x3164 || c == 0xFFA0;
  };
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = decode(text, at);
    const bool shown = point.valid && point.value > 0x20 && !space(point.value) && !invisible(point.value);
    if (shown) return false;
    at += point.length;
  }
  return true;
}

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = decode(text, at);
    const auto byte = static_cast<unsigned char>(text[at]);
    if (!point.valid || point.value < 0x20 || point.value == 0x7F) {
      if (byte == '\n') {
        out += "\\n";
      } else if (byte == '\t') {
        out += "\\t";
      } else if (byte == '\r') {
        out += "\\r";
      } else {
        append_byte(out, byte);
      }
    } else if ((point.value >= 0x80 && point.value < 0xA0) || point.value == 0x2028 || point.value == 0x2029) {
      for (size_t i = 0; i < point.length; ++i) append_byte(out, static_cast<unsigned char>(text[at + i]));
    } else if (invisible(point.value)) {
      out += fmt::format("\\u{:04x}", static_cast<uint32_t>(point.value));
    } else {
      out += text.substr(at, point.length);
    }
    at += point.length;
  }
  return out;
}

std::string quoted(std::string_view text, size_t limit) {
  const size_t end = offset_of(text, limit);
  return '"' + printable(text.substr(0, end)) + (end < text.size() ? "...\"" : "\"");
}

std::string around(std::string_view text, size_t offset, size_t before, size_t after) {
  size_t start = std::min(offset, text.size());
  const size_t middle = start;
  for (; before > 0 && start > 0; --before) start = step_back(text, start);
  const size_t end = middle + offset_of(text.substr(middle), after);
  return (start > 0 ? "\"..." : "\"") + printable(text.substr(start, middle - start)) + "|" +
         printable(text.substr(middle, end - middle)) + (end < text.size() ? "...\"" : "\"");
}

std::string python_repr(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

}  // namespace assay::text
