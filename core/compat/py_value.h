// Values as Python's json module makes them, and what Python's operators do with them. Inside this room an exception of
// Python is a PyError that is thrown; judge_inference() catches it. Pure functions, safe from any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace assay::compat {

// An exception of Python: `kind` is its class.
struct PyError {
  std::string kind;
  std::string message;
};

struct Value {
  enum class Kind : uint8_t { kNone, kBool, kInt, kBigInt, kFloat, kText, kList, kDict };
  Kind kind = Kind::kNone;
  int64_t integer = 0;       // kBool (0, 1), kInt
  double number = 0;         // kFloat
  std::string digits;        // kBigInt, beyond int64: sign and digits, no leading zero
  std::u32string text;       // kText: code points; lone surrogates are possible
  std::vector<Value> items;  // kList
  struct Member;
  std::vector<Member> members;  // kDict: each key once, in order of first appearance

  bool is_number() const { return kind >= Kind::kBool && kind <= Kind::kFloat; }
  bool is_integer() const { return kind >= Kind::kBool && kind <= Kind::kBigInt; }
  const Value* find(std::u32string_view key) const;  // of a kDict; nullptr: none
};

struct Value::Member {
  std::u32string key;
  Value value;
};

const char* type_name(const Value& value);  // "int"

// a == b. Inside lists and dicts a NaN equals itself: Python compares identities first, and its json has one NaN.
bool equal(const Value& a, const Value& b);

// Exact comparison of two numbers, of whatever kind.
enum class Order : int8_t { kLess = -1, kEqual = 0, kGreater = 1, kUnordered = 2 };
Order compare(const Value& a, const Value& b);

// The double of a number (OverflowError when an int is too large); of anything else TypeError.
double real_number(const Value& value);

// float(value): a text is parsed, too.
double to_float(const Value& value);

// statistics.median; StatisticsError when empty, TypeError on what is no number. Values that a NaN leaves unordered are
// placed as Python's sort places them in lists of up to 63.
Value median(std::vector<Value> values);

Value float_value(double number);

std::string to_utf8(std::u32string_view text);  // lone surrogates become U+FFFD

}  // namespace assay::compat
