// Values of arguments: numbers as Python reads them, layer patterns.
#include <charconv>
#include <cstdlib>

#include "core/discover/arguments.h"

namespace assay::discover {
namespace {

// Without blanks around and underscores between digits; empty: not a number text.
std::string plain_number(std::string_view text) {
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  const size_t first = text.find_first_not_of(" \t\n\r\f\v");
  if (first == std::string_view::npos) return {};
  text = text.substr(first, text.find_last_not_of(" \t\n\r\f\v") - first + 1);
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      out += text[i];
    } else if (i == 0 || i + 1 == text.size() || !digit(text[i - 1]) || !digit(text[i + 1])) {
      return {};
    }
  }
  return out;
}

// Recursive descent over the pattern's grammar:  sum := product (+ product)*;  product := item (* item)*;
// item := integer | [ sum, ... ] | ( sum ). Lists repeat and concatenate as in Python.
class PatternReader {
 public:
  explicit PatternReader(std::string_view text) : text_(text) {}

  Result<model::ArgValue> read() {
    Value value = sum(0);
    if (ok_ && at_ != text_.size()) fail("unexpected '" + std::string(1, text_[at_]) + "'");
    if (ok_ && !value.is_list) fail("not a list");
    if (!ok_) return invalid("layer pattern '" + std::string(text_) + "': " + why_);
    model::ArgList list;
    for (const int64_t item : value.list) list.emplace_back().value = item;
    return model::ArgValue{std::move(list)};
  }

 private:
  struct Value {
    bool is_list = false;
    int64_t number = 0;
    std::vector<int64_t> list;
  };
  static constexpr size_t kMostItems = 4096;
  static constexpr int64_t kMostNumber = 1 << 20;
  static constexpr int kDeepest = 32;

  void fail(const std::string& why) {
    if (ok_) why_ = why;
    ok_ = false;
  }
  bool take(char c) {
    if (!ok_ || at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  Value sum(int depth) {
    Value left = product(depth);
    while (take('+')) {
      const Value right = product(depth);
      if (!ok_) break;
      if (left.is_list != right.is_list) fail("a list and a number cannot be added");
      left.number += right.number;
      left.list.insert(left.list.end(), right.list.begin(), right.list.end());
      check(left);
    }
    return left;
  }

  Value product(int depth) {
    Value left = item(depth);
    while (take('*')) {
      Value right = item(depth);
      if (!ok_) break;
      if (left.is_list && right.is_list) fail("two lists cannot be multiplied");
      if (!ok_) break;
      if (!left.is_list && !right.is_list) {
        left.number *= right.number;
      } else {
        if (right.is_list) std::swap(left, right);
        left = repeat(left, right.number);
      }
      check(left);
    }
    return left;
  }

  Value repeat(const Value& list, int64_t times) {
    Value out{true, 0, {}};
    if (static_cast<uint64_t>(times) * list.list.size() > kMostItems) fail("more than 4096 layers");
    for (int64_t i = 0; ok_ && i < times; ++i) out.list.insert(out.list.end(), list.list.begin(), list.list.end());
    return out;
  }

  Value item(int depth) {
    if (depth > kDeepest) fail("nested too deeply");
    if (take('(')) {
      Value value = sum(depth + 1);
      if (!take(')')) fail("a ')' is missing");
      return value;
    }
    if (take('[')) return list(depth);
    return number();
  }

  Value list(int depth) {
    Value out{true, 0, {}};
    while (ok_ && !take(']')) {
      const Value value = sum(depth + 1);
      if (value.is_list) fail("a list inside a list");
      out.list.push_back(value.number);
      check(out);
      if (!take(',')) {
        if (!take(']')) fail("a ']' is missing");
        break;
      }
    }
    return out;
  }

  Value number() {
    Value value;
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value.number);
    if (!ok_ || error != std::errc() || text_[at_] == '-') {
      fail("a number or a list is expected at character " + std::to_string(at_ + 1));
      return {};
    }
    at_ = static_cast<size_t>(end - text_.data());
    check(value);
    return value;
  }

  void check(const Value& value) {
    if (value.list.size() > kMostItems) fail("more than 4096 layers");
    if (value.number > kMostNumber) fail("a number is too large");
  }

  std::string_view text_;
  size_t at_ = 0;
  bool ok_ = true;
  std::string why_;
};

}  // namespace

Result<int64_t> parse_int(std::string_view text) {
  const std::string plain = plain_number(text);
  const char* begin = plain.data() + (plain.starts_with('+') ? 1 : 0);
  const char* end = plain.data() + plain.size();
  int64_t value = 0;
  const auto [stop, error] = std::from_chars(begin, end, value);
  if (error == std::errc::result_out_of_range) return invalid("'" + std::string(text) + "' does not fit in 64 bits");
  if (plain.empty() || error != std::errc() || stop != end || plain.starts_with("+-")) {
    return invalid("'" + std::string(text) + "' is not an integer");
  }
  return value;
}

Result<double> parse_float(std::string_view text) {
  const std::string plain = plain_number(text);
  const Status bad = invalid("'" + std::string(text) + "' is not a number");
  if (plain.empty() || plain.find_first_of("xXpP(") != std::string::npos) return bad;  // strtod knows more than Python
  char* end = nullptr;
  const double value = std::strtod(plain.c_str(), &end);
  if (end != plain.c_str() + plain.size()) return bad;
  return value;
}

Result<model::ArgValue> parse_layer_pattern(std::string_view text) {
  if (text.find('[') != std::string_view::npos) return PatternReader(text).read();
  const Result<int64_t> number = parse_int(text);
  if (!number.ok()) return number.status();
  return model::ArgValue{*number};
}

}  // namespace assay::discover
