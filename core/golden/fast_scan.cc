#include "core/golden/fast_scan.h"

#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <limits>

#include "core/golden/json_text.h"
#include "core/golden/text.h"

namespace assay::json {
namespace {

// Powers of ten that a double holds exactly.
constexpr std::array<double, 23> kPowers = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                            1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
constexpr uint64_t kExact = uint64_t{1} << 53;  // integers up to here are doubles

// Eight characters, the first in the lowest byte, as bytes from 0 to 9; false when one is no digit: it has its high bit
// set or is 10 or more, which adding 0x76 carries into the high bit.
bool digit_bytes(uint64_t& eight) {
  eight ^= 0x3030303030303030U;
  return ((eight | (eight + 0x7676767676767676U)) & 0x8080808080808080U) == 0;
}

// The number that eight digit bytes spell: neighbours are joined to two, four, eight digits.
uint64_t joined(uint64_t eight) {
  eight = (eight & 0x000F000F000F000FU) * 10 + ((eight >> 8U) & 0x000F000F000F000FU);
  eight = (eight & 0x000000FF000000FFU) * 100 + ((eight >> 16U) & 0x000000FF000000FFU);
  return (eight & 0xFFFFU) * 10000 + (eight >> 32U);
}

// Bytes of a string that stand for themselves and are no part of a longer code point.
bool is_plain(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x20 && byte < 0x80 && c != '"' && c != '\\';
}

void append_utf8(std::string& out, uint32_t point) {
  const auto put = [&out](uint32_t byte) { out += static_cast<char>(byte); };
  if (point < 0x80) return put(point);
  if (point < 0x800) {
    put(0xC0U | (point >> 6U));
  } else {
    if (point < 0x10000) {
      put(0xE0U | (point >> 12U));
    } else {
      put(0xF0U | (point >> 18U));
      put(0x80U | ((point >> 12U) & 0x3FU));
    }
    put(0x80U | ((point >> 6U) & 0x3FU));
  }
  put(0x80U | (point & 0x3FU));
}

}  // namespace

bool Scanner::word(std::string_view spelling) {
  if (static_cast<size_t>(end_ - at_) < spelling.size()) return false;
  if (std::memcmp(at_, spelling.data(), spelling.size()) != 0) return false;
  at_ += spelling.size();
  return true;
}

bool Scanner::string(std::string& value) {
  value.clear();
  if (!take('"')) return false;
  for (;;) {
    const char* first = at_;
    while (at_ < end_ && is_plain(*at_)) ++at_;
    value.append(first, at_);
    if (at_ == end_) return false;
    if (*at_ == '"') {
      ++at_;
      return true;
    }
    if (*at_ == '\\') {
      ++at_;
      if (!escape(value)) return false;
      continue;
    }
    const text::CodePoint point = text::decode({at_, static_cast<size_t>(end_ - at_)}, 0);
    if (!point.valid || point.value < 0x20) return false;
    value.append(at_, point.length);
    at_ += point.length;
  }
}

// What follows a backslash.
bool Scanner::escape(std::string& value) {
  constexpr std::string_view kNames = "\"\\/bfnrt";
  constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
  if (at_ == end_) return false;
  const char name = *at_++;
  if (name != 'u') {
    const size_t which = kNames.find(name);
    if (which == std::string_view::npos) return false;
    value += kMeanings[which];
    return true;
  }
  uint32_t unit = 0;
  if (!hex(unit)) return false;
  if (unit >= 0xD800 && unit < 0xE000) {
    uint32_t low = 0;
    if (unit >= 0xDC00 || !word("\\u") || !hex(low) || low < 0xDC00 || low >= 0xE000) return false;
    unit = 0x10000 + ((unit - 0xD800) << 10U) + (low - 0xDC00);
  }
  append_utf8(value, unit);
  return true;
}

bool Scanner::hex(uint32_t& unit) {
  if (end_ - at_ < 4) return false;
  const auto [stop, error] = std::from_chars(at_, at_ + 4, unit, 16);
  if (error != std::errc() || stop != at_ + 4) return false;
  at_ += 4;
  return true;
}

bool Scanner::number(double& value) {
  const char first = peek();
  if (first == 'N') {
    value = std::numeric_limits<double>::quiet_NaN();
    return word("NaN");
  }
  if (first == 'I' || (first == '-' && at_[1] == 'I')) {
    value = (first == 'I' ? 1 : -1) * std::numeric_limits<double>::infinity();
    return word(first == 'I' ? "Infinity" : "-Infinity");
  }
  return finite(at_, value);
}

// Appends the digits that stand here, modulo 2^64.
void Scanner::take_digits(uint64_t& digits) {
  if constexpr (std::endian::native == std::endian::little) {
    uint64_t eight = 0;
    while (end_ - at_ >= 8) {
      std::memcpy(&eight, at_, sizeof(eight));
      if (!digit_bytes(eight)) break;
      digits = digits * 100000000 + joined(eight);
      at_ += 8;
    }
  }
  for (; is_digit(*at_); ++at_) digits = digits * 10 + static_cast<uint64_t>(*at_ - '0');
}

// Up to 19 significant digits fit an integer. When that is at most 2^53 and the power of ten exact, one correctly
// rounded multiplication or division gives the nearest double (Clinger, "How to Read Floating Point Numbers
// Accurately", 1990).
bool Scanner::finite(const char* first, double& value) {
  const bool negative = *at_ == '-';
  if (negative) ++at_;
  const char* start = at_;
  uint64_t digits = 0;
  for (; is_digit(*at_); ++at_) digits = digits * 10 + static_cast<uint64_t>(*at_ - '0');
  auto count = at_ - start;
  if (!well_formed_whole(start)) return false;
  if (*at_ != '.' && *at_ != 'e' && *at_ != 'E') {
    if (count > kMostDigits) return false;
    const auto integer = static_cast<int64_t>(digits);
    value = static_cast<double>(negative ? -integer : integer);  // the integer -0 is 0
    return true;
  }
  int64_t power = 0;
  if (*at_ == '.') {
    const char* fraction = ++at_;
    take_digits(digits);
    if (at_ == fraction) return false;
    count += at_ - fraction;
    power = fraction - at_;
  }
  if (*at_ == 'e' || *at_ == 'E') {
    ++at_;
    const bool shrinks = *at_ == '-';
    if (*at_ == '-' || *at_ == '+') ++at_;
    const char* exponent = at_;
    uint64_t magnitude = 0;
    for (; is_digit(*at_); ++at_) magnitude = magnitude * 10 + static_cast<uint64_t>(*at_ - '0');
    if (at_ == exponent || at_ - exponent > 5) return false;
    power += shrinks ? -static_cast<int64_t>(magnitude) : static_cast<int64_t>(magnitude);
  }
  if (count <= 19 && digits <= kExact && power >= -22 && power <= 22) {
    const auto whole = static_cast<double>(digits);
    const double size =
        power < 0 ? whole / kPowers[static_cast<size_t>(-power)] : whole * kPowers[static_cast<size_t>(power)];
    value = negative ? -size : size;
    return true;
  }
  const auto [stop, error] = std::from_chars(first, at_, value);
  return error == std::errc() && stop == at_;
}

bool Scanner::number_text(std::string& text) {
  const char first = peek();
  if (first != '-' && !is_digit(first)) return false;
  const char* start = at_;
  double value = 0;
  if (!finite(start, value)) return false;
  const std::string_view spelling(start, static_cast<size_t>(at_ - start));
  if (spelling.find_first_of(".eE") != std::string_view::npos) {
    text = spelling;
    return true;
  }
  int64_t integer = 0;
  std::from_chars(start, at_, integer);
  text.clear();
  append_integer(text, integer);
  return true;
}

}  // namespace assay::json
