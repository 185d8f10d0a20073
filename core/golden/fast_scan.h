// The tokens of plain JSON, read straight from the bytes. What is not plain is refused, not explained: whoever uses
// this reads the text again with a parser that has words for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace assay::json {

// A position in a text. Functions that return false leave it anywhere: the scan is over. Values are those of a JSON
// parser to the last bit; refused are integers of more than 18 digits, doubles out of range, ill-formed UTF-8 and
// surrogates without their partner. Not thread-safe.
class Scanner {
 public:
  // `text` ends with '}', which ends every number and every run of blanks before the end of the text. Borrowed.
  explicit Scanner(std::string_view text) : at_(text.data()), end_(text.data() + text.size()) {}

  // The character behind blanks, '\0' at the end; it stays.
  char peek() {
    while (at_ < end_ && is_blank(*at_)) ++at_;
    return at_ < end_ ? *at_ : '\0';
  }
  // Takes `wanted` if it is what peek gives.
  bool take(char wanted) {
    if (peek() != wanted) return false;
    ++at_;
    return true;
  }
  bool at_end() const { return at_ == end_; }

  // null, true, false, NaN ... at this very position.
  bool word(std::string_view spelling);

  // A string, decoded.
  bool string(std::string& value);

  // An integer without fraction or exponent; what follows it is not looked at.
  bool integer(int64_t& value) {
    const bool negative = peek() == '-';
    if (negative) ++at_;
    const char* first = at_;
    uint64_t digits = 0;
    for (; is_digit(*at_); ++at_) digits = digits * 10 + static_cast<uint64_t>(*at_ - '0');
    if (!well_formed_whole(first) || at_ - first > kMostDigits) return false;
    value = negative ? -static_cast<int64_t>(digits) : static_cast<int64_t>(digits);
    return true;
  }

  // Any number; NaN, Infinity and -Infinity too.
  bool number(double& value);

  // Any finite number as a member that is only carried along keeps it: floats as spelled, integers in decimal.
  bool number_text(std::string& text);

  // [ one, one ... ]; `one` reads a value and returns false to refuse.
  template <class One>
  bool list(One one) {
    if (!take('[')) return false;
    if (take(']')) return true;
    for (;;) {
      if (!one()) return false;
      const char next = peek();
      if (next != ',' && next != ']') return false;
      ++at_;
      if (next == ']') return true;
    }
  }

  // { "key": value, ... }; `one` reads the value; it may take the contents of the key. `key` is scratch.
  template <class One>
  bool object(std::string& key, One one) {
    if (!take('{')) return false;
    if (take('}')) return true;
    for (;;) {
      if (!string(key) || !take(':') || !one(key)) return false;
      const char next = peek();
      if (next != ',' && next != '}') return false;
      ++at_;
      if (next == '}') return true;
    }
  }

 private:
  static bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }
  static bool is_digit(char c) { return static_cast<unsigned char>(c - '0') < 10; }
  static constexpr int kMostDigits = 18;  // of an integer: any such fits int64_t
  // At least one digit since `first`, no needless zero before them.
  bool well_formed_whole(const char* first) const { return at_ > first && (*first != '0' || at_ - first == 1); }
  bool finite(const char* first, double& value);
  void take_digits(uint64_t& digits);
  bool escape(std::string& value);
  bool hex(uint32_t& unit);

  const char* at_;
  const char* end_;
};

}  // namespace assay::json
