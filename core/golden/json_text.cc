#include "core/golden/json_text.h"

#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "core/golden/text.h"

namespace assay::json {
namespace {

struct Literal {
  std::string_view spelling;
  double value;
};
constexpr std::array<Literal, 3> kLiterals = {{{"NaN", std::numeric_limits<double>::quiet_NaN()},
                                               {"Infinity", std::numeric_limits<double>::infinity()},
                                               {"-Infinity", -std::numeric_limits<double>::infinity()}}};

bool is_word(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.' ||
         c == '+' || c == '-';
}

// Offset just behind the string that opens at `at`.
size_t skip_string(std::string_view text, size_t at) {
  for (++at; at < text.size() && text[at] != '"'; ++at) {
    if (text[at] == '\\') ++at;
  }
  return at + 1;
}

void append_unit(std::string& out, uint32_t unit) {
  constexpr std::string_view kHex = "0123456789abcdef";
  out += "\\u";
  for (int shift = 12; shift >= 0; shift -= 4) out += kHex[(unit >> static_cast<uint32_t>(shift)) & 15U];
}

void append_escaped(std::string& out, char32_t point) {
  switch (point) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    case '\b':
      out += "\\b";
      return;
    case '\f':
      out += "\\f";
      return;
    default:
      break;
  }
  if (point < 0x10000) return append_unit(out, point);
  append_unit(out, 0xD800 + ((point - 0x10000) >> 10U));
  append_unit(out, 0xDC00 + ((point - 0x10000) & 0x3FFU));
}

}  // namespace

Blanked blank_nonfinite(std::string_view document) {
  Blanked result;
  if (document.find("NaN") == std::string_view::npos && document.find("Infinity") == std::string_view::npos) {
    return result;
  }
  result.storage = document;
  std::string& text = result.storage;
  uint64_t numbers = 0;
  for (size_t at = 0; at < text.size();) {
    if (text[at] == '"') {
      at = skip_string(text, at);
      continue;
    }
    if (!is_word(text[at])) {
      ++at;
      continue;
    }
    size_t end = at;
    while (end < text.size() && is_word(text[end])) ++end;
    const std::string_view word = std::string_view(text).substr(at, end - at);
    const bool number = word[0] == '-' || (word[0] >= '0' && word[0] <= '9');
    for (const Literal& literal : kLiterals) {
      if (word != literal.spelling) continue;
      result.nonfinite.push_back({numbers, literal.value});
      text.replace(at, word.size(), "0" + std::string(word.size() - 1, ' '));
      if (!number) ++numbers;
      break;
    }
    if (number) ++numbers;
    at = end;
  }
  return result;
}

void append_string(std::string& out, std::string_view text) {
  out += '"';
  for (size_t at = 0; at < text.size();) {
    const auto byte = static_cast<unsigned char>(text[at]);
    if (byte >= 0x20 && byte < 0x7F && byte != '"' && byte != '\\') {
      out += text[at++];
      continue;
    }
    const text::CodePoint point = text::decode(text, at);
    append_escaped(out, point.value);
    at += point.length;
  }
  out += '"';
}

bool deeper_than(std::string_view document, size_t most) {
  size_t open = 0;
  bool in_string = false;
  for (size_t i = 0; i < document.size(); ++i) {
    const char c = document[i];
    if (in_string) {
      if (c == '\\') ++i;
      in_string = c != '"';
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      if (++open > most) return true;
    } else if ((c == '}' || c == ']') && open > 0) {
      --open;
    }
  }
  return false;
}

void append_double(std::string& out, double value) {
  if (std::isnan(value)) {
    out += "NaN";
  } else if (std::isinf(value)) {
    out += value > 0 ? "Infinity" : "-Infinity";
  } else {
    std::array<char, 32> buffer;
    const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
    const std::string_view spelling(buffer.data(), static_cast<size_t>(end - buffer.data()));
    out += spelling;
    if (spelling.find_first_of(".e") == std::string_view::npos) out += ".0";
  }
}

void append_integer(std::string& out, int64_t value) {
  std::array<char, 24> buffer;
  out.append(buffer.data(), std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr);
}

}  // namespace assay::json
