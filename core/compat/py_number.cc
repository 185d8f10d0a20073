#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "core/compat/py_value.h"

namespace assay::compat {
namespace {

using Kind = Value::Kind;

std::string digits_of(const Value& integer) {
  return integer.kind == Kind::kBigInt ? integer.digits : std::to_string(integer.integer);
}

Order order_of(int sign) { return sign < 0 ? Order::kLess : sign > 0 ? Order::kGreater : Order::kEqual; }

// Two integers, written in decimal.
Order compare_digits(std::string_view a, std::string_view b) {
  const bool a_negative = a.starts_with('-'), b_negative = b.starts_with('-');
  if (a_negative != b_negative) return a_negative ? Order::kLess : Order::kGreater;
  if (a_negative) {
    a.remove_prefix(1);
    b.remove_prefix(1);
  }
  const int sign = a.size() != b.size() ? (a.size() < b.size() ? -1 : 1) : a.compare(b);
  return order_of(a_negative ? -sign : sign);
}

Order compare_with_double(const Value& integer, double number) {
  if (std::isnan(number)) return Order::kUnordered;
  if (std::isinf(number)) return number > 0 ? Order::kLess : Order::kGreater;
  char whole[400];
  std::snprintf(whole, sizeof(whole), "%.0f", std::trunc(number));
  const std::string_view digits = std::string_view(whole) == "-0" ? std::string_view("0") : std::string_view(whole);
  const Order order = compare_digits(digits_of(integer), digits);
  if (order != Order::kEqual) return order;
  const double rest = number - std::trunc(number);
  return rest > 0 ? Order::kLess : rest < 0 ? Order::kGreater : Order::kEqual;
}

Order reversed(Order order) {
  return order == Order::kLess ? Order::kGreater : order == Order::kGreater ? Order::kLess : order;
}

bool less(const Value& a, const Value& b) { return compare(a, b) == Order::kLess; }

// A run that is ascending, or strictly descending and then turned round, goes first; the others are inserted by
// halving.
void sort_like_python(std::vector<Value>& values) {
  if (values.size() < 2) return;
  size_t run = 2;
  if (less(values[1], values[0])) {
    while (run < values.size() && less(values[run], values[run - 1])) ++run;
    std::reverse(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(run));
  } else {
    while (run < values.size() && !less(values[run], values[run - 1])) ++run;
  }
  for (size_t at = run; at < values.size(); ++at) {
    size_t low = 0, high = at;
    while (low < high) {
      const size_t middle = low + (high - low) / 2;
      if (less(values[at], values[middle])) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    const auto begin = values.begin();
    std::rotate(begin + static_cast<std::ptrdiff_t>(low), begin + static_cast<std::ptrdiff_t>(at),
                begin + static_cast<std::ptrdiff_t>(at) + 1);
  }
}

bool is_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

// The digits of a decimal number with Python's rules: underscores between digits alone.
bool take_digits(std::string_view text, size_t& at, std::string& out) {
  const size_t begin = at;
  const auto digit = [&](size_t i) { return i < text.size() && text[i] >= '0' && text[i] <= '9'; };
  while (digit(at) || (at > begin && at < text.size() && text[at] == '_' && digit(at + 1))) {
    if (text[at] != '_') out += text[at];
    ++at;
  }
  return at > begin;
}

double parse_float(std::u32string_view text) {
  const PyError wrong{"ValueError", "could not convert string to float"};
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  std::string word;
  for (const char32_t c : text) {
    if (c >= 0x80) throw wrong;
    word += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  }
  std::string clean;
  size_t at = 0;
  if (at < word.size() && (word[at] == '-' || word[at] == '+')) clean += word[at++];
  const std::string_view name = std::string_view(word).substr(at);
  if (name == "inf" || name == "infinity") return clean == "-" ? -HUGE_VAL : HUGE_VAL;
  if (name == "nan") return std::nan("");
  bool some = take_digits(word, at, clean);
  if (at < word.size() && word[at] == '.') {
    clean += word[at++];
    some |= take_digits(word, at, clean);
  }
  if (!some) throw wrong;
  if (at < word.size() && word[at] == 'e') {
    clean += word[at++];
    if (at < word.size() && (word[at] == '-' || word[at] == '+')) clean += word[at++];
    if (!take_digits(word, at, clean)) throw wrong;
  }
  if (at != word.size()) throw wrong;
  return std::strtod(clean.c_str(), nullptr);
}

}  // namespace

Order compare(const Value& a, const Value& b) {
  if (a.kind == Kind::kFloat && b.kind == Kind::kFloat) {
    if (std::isnan(a.number) || std::isnan(b.number)) return Order::kUnordered;
    return order_of(a.number < b.number ? -1 : a.number > b.number ? 1 : 0);
  }
  if (a.kind == Kind::kFloat) return reversed(compare_with_double(b, a.number));
  if (b.kind == Kind::kFloat) return compare_with_double(a, b.number);
  if (a.kind != Kind::kBigInt && b.kind != Kind::kBigInt) {
    return order_of(a.integer < b.integer ? -1 : a.integer > b.integer ? 1 : 0);
  }
  return compare_digits(digits_of(a), digits_of(b));
}

double real_number(const Value& value) {
  switch (value.kind) {
    case Kind::kFloat:
      return value.number;
    case Kind::kBool:
    case Kind::kInt:
      return static_cast<double>(value.integer);
    case Kind::kBigInt: {
      const double number = std::strtod(value.digits.c_str(), nullptr);
      if (std::isinf(number)) throw PyError{"OverflowError", "int too large to convert to float"};
      return number;
    }
    default:
      throw PyError{"TypeError", std::string("a number is needed, not ") + type_name(value)};
  }
}

double to_float(const Value& value) { return value.kind == Kind::kText ? parse_float(value.text) : real_number(value); }

Value median(std::vector<Value> values) {
  if (values.empty()) throw PyError{"StatisticsError", "no median of no values"};
  for (const Value& value : values) {
    if (!value.is_number()) throw PyError{"TypeError", std::string("no median of ") + type_name(value)};
  }
  sort_like_python(values);
  const size_t middle = values.size() / 2;
  if (values.size() % 2 == 1) return values[middle];
  const Value &a = values[middle - 1], &b = values[middle];
  const auto small = [](const Value& value) { return value.kind == Kind::kBool || value.kind == Kind::kInt; };
  if (small(a) && small(b)) return float_value(static_cast<double>(static_cast<__int128>(a.integer) + b.integer) / 2);
  return float_value((real_number(a) + real_number(b)) / 2);
}

}  // namespace assay::compat
