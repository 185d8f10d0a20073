#include "core/compat/py_json.h"

#include <charconv>
#include <cstdlib>
#include <limits>
#include <unordered_map>

namespace assay::compat {
namespace {

using Kind = Value::Kind;

constexpr size_t kMostDigits = 4300;
constexpr size_t kManyMembers = 32;  // from here on keys are looked up in a table

bool is_digit(char32_t c) { return c >= '0' && c <= '9'; }

class Loader {
 public:
  explicit Loader(std::u32string_view text) : text_(text) {}

  Value load() {
    if (peek() == 0xFEFF) fail("a byte order mark");
    skip();
    Value value = any(0);
    skip();
    if (at_ != text_.size()) fail("more behind the end");
    return value;
  }

 private:
  [[noreturn]] void fail(const char* what) const {
    throw PyError{"JSONDecodeError", std::string(what) + " at character " + std::to_string(at_)};
  }

  char32_t peek(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : U'\0'; }

  void skip() {
    while (at_ < text_.size() && (peek() == ' ' || peek() == '\t' || peek() == '\n' || peek() == '\r')) ++at_;
  }

  bool word(std::u32string_view expected) {
    if (text_.substr(at_, expected.size()) != expected) return false;
    at_ += expected.size();
    return true;
  }

  Value any(int depth) {
    if (depth > kMostNesting) throw PyError{"RecursionError", "nested too deeply"};
    Value value;
    switch (peek()) {
      case '"':
        value.kind = Kind::kText;
        value.text = string();
        return value;
      case '{':
        return object(depth);
      case '[':
        return array(depth);
      default:
        break;
    }
    if (word(U"null")) return value;
    if (word(U"true") || word(U"false")) {
      value.kind = Kind::kBool;
      value.integer = text_[at_ - 2] == 'u' ? 1 : 0;
      return value;
    }
    if (word(U"NaN")) return float_value(std::numeric_limits<double>::quiet_NaN());
    if (word(U"Infinity")) return float_value(std::numeric_limits<double>::infinity());
    if (word(U"-Infinity")) return float_value(-std::numeric_limits<double>::infinity());
    return number();
  }

  Value number() {
    const size_t begin = at_;
    size_t end = at_ + (peek() == '-' ? 1 : 0);
    const auto digit = [&](size_t i) { return i < text_.size() && is_digit(text_[i]); };
    if (!digit(end)) fail("a value is expected");
    if (text_[end] == '0') {
      ++end;
    } else {
      while (digit(end)) ++end;
    }
    bool real = false;
    if (end < text_.size() && text_[end] == '.' && digit(end + 1)) {
      real = true;
      for (++end; digit(end);) ++end;
    }
    if (end < text_.size() && (text_[end] == 'e' || text_[end] == 'E')) {
      size_t exponent = end + 1;
      if (exponent < text_.size() && (text_[exponent] == '-' || text_[exponent] == '+')) ++exponent;
      if (digit(exponent)) {
        real = true;
        for (end = exponent; digit(end);) ++end;
      }
    }
    std::string spelling(text_.begin() + static_cast<std::ptrdiff_t>(begin),
                         text_.begin() + static_cast<std::ptrdiff_t>(end));
    at_ = end;
    return real ? float_value(std::strtod(spelling.c_str(), nullptr)) : integer(std::move(spelling));
  }

  static Value integer(std::string spelling) {
    Value value;
    value.kind = Kind::kInt;
    const char* end = spelling.data() + spelling.size();
    if (std::from_chars(spelling.data(), end, value.integer).ec == std::errc()) return value;
    if (spelling.size() - (spelling[0] == '-' ? 1 : 0) > kMostDigits) {
      throw PyError{"ValueError", "an integer of more than 4300 digits"};
    }
    value.kind = Kind::kBigInt;
    value.digits = std::move(spelling);
    return value;
  }

  char32_t hex4(size_t at) const {
    char32_t unit = 0;
    for (size_t i = at; i < at + 4; ++i) {
      const char32_t c = i < text_.size() ? text_[i] : U'\0';
      const bool letter = (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
      if (!letter && !is_digit(c)) fail("a \\uXXXX is expected");
      unit = unit * 16 + (letter ? (c | 0x20) - 'a' + 10 : c - '0');
    }
    return unit;
  }

  char32_t escaped() {
    const char32_t c = peek();
    ++at_;
    switch (c) {
      case '"':
      case '\\':
      case '/':
        return c;
      case 'b':
        return '\b';
      case 'f':
        return '\f';
      case 'n':
        return '\n';
      case 'r':
        return '\r';
      case 't':
        return '\t';
      case 'u':
        break;
      default:
        fail("an unknown escape");
    }
    const char32_t high = hex4(at_);
    at_ += 4;
    if (high < 0xD800 || high >= 0xDC00 || peek() != '\\' || peek(1) != 'u') return high;
    const char32_t low = hex4(at_ + 2);
    if (low < 0xDC00 || low >= 0xE000) return high;
    at_ += 6;
    return 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
  }

  std::u32string string() {
    std::u32string out;
    for (++at_; peek() != '"' || at_ >= text_.size();) {
      if (at_ >= text_.size()) fail("an unterminated string");
      const char32_t c = text_[at_++];
      if (c < 0x20) fail("a control character in a string");
      out += c == '\\' ? escaped() : c;
    }
    ++at_;
    return out;
  }

  Value array(int depth) {
    Value value;
    value.kind = Kind::kList;
    ++at_;
    skip();
    if (peek() == ']') {
      ++at_;
      return value;
    }
    for (;;) {
      value.items.push_back(any(depth + 1));
      skip();
      const char32_t c = peek();
      if (c != ',' && c != ']') fail("a ',' or a ']' is expected");
      ++at_;
      if (c == ']') return value;
      skip();
    }
  }

  Value object(int depth) {
    Value value;
    value.kind = Kind::kDict;
    std::unordered_map<std::u32string, size_t> places;
    ++at_;
    skip();
    if (peek() == '}') {
      ++at_;
      return value;
    }
    for (;;) {
      if (peek() != '"') fail("a key is expected");
      std::u32string key = string();
      skip();
      if (peek() != ':') fail("a ':' is expected");
      ++at_;
      skip();
      put(&value, &places, std::move(key), any(depth + 1));
      skip();
      const char32_t c = peek();
      if (c != ',' && c != '}') fail("a ',' or a '}' is expected");
      ++at_;
      if (c == '}') return value;
      skip();
    }
  }

  static void put(Value* dict, std::unordered_map<std::u32string, size_t>* places, std::u32string key, Value value) {
    auto& members = dict->members;
    if (members.size() < kManyMembers) {
      for (auto& [name, old] : members) {
        if (name != key) continue;
        old = std::move(value);
        return;
      }
    } else {
      if (places->empty()) {
        for (size_t i = 0; i < members.size(); ++i) places->emplace(members[i].key, i);
      }
      const auto [place, added] = places->emplace(key, members.size());
      if (!added) {
        members[place->second].value = std::move(value);
        return;
      }
    }
    members.push_back({std::move(key), std::move(value)});
  }

  std::u32string_view text_;
  size_t at_ = 0;
};

}  // namespace

std::u32string decode_utf8(std::string_view bytes) {
  std::u32string out;
  out.reserve(bytes.size());
  for (size_t i = 0; i < bytes.size();) {
    const auto lead = static_cast<unsigned char>(bytes[i]);
    const size_t length = lead < 0x80                   ? 1
                          : lead >= 0xC2 && lead < 0xE0 ? 2
                          : lead >= 0xE0 && lead < 0xF0 ? 3
                          : lead >= 0xF0 && lead < 0xF5 ? 4
                                                        : 0;
    char32_t c = length == 1 ? lead : lead & (0x7F >> length);
    bool good = length > 0 && i + length <= bytes.size();
    for (size_t k = 1; good && k < length; ++k) {
      const auto next = static_cast<unsigned char>(bytes[i + k]);
      good = (next & 0xC0) == 0x80;
      c = (c << 6) | (next & 0x3F);
    }
    constexpr char32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
    if (!good || c < kLeast[length] || c > 0x10FFFF || (c >= 0xD800 && c < 0xE000)) {
      throw PyError{"UnicodeDecodeError", "byte " + std::to_string(i) + " is not UTF-8"};
    }
    out += c;
    i += length;
  }
  return out;
}

Value load_json(std::u32string_view text) { return Loader(text).load(); }

}  // namespace assay::compat
