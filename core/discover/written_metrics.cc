#include "core/discover/written_metrics.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace assay::discover {
namespace {

using Form = CompatMetrics::Form;

template <size_t N>
bool one_of(std::string_view text, const std::array<std::string_view, N>& words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

bool is_false(const std::string& text) {
  return one_of<9>(text, {"no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"});
}

bool is_true(const std::string& text) {
  return one_of<9>(text, {"yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"});
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_figure(char c) { return is_digit(c) || c == '_'; }

// Reads a scalar from the left without a step back: METRICS may be as long as the file.
class ScalarReader {
 public:
  explicit ScalarReader(std::string_view text) : rest_(text) {}

  bool done() const { return rest_.empty(); }
  bool one(std::string_view chars) {
    const bool fits = !rest_.empty() && chars.find(rest_.front()) != std::string_view::npos;
    if (fits) rest_.remove_prefix(1);
    return fits;
  }
  bool word(std::string_view text) {
    const bool fits = rest_.starts_with(text);
    if (fits) rest_.remove_prefix(text.size());
    return fits;
  }
  template <class Fits>
  size_t run(Fits fits) {
    const size_t length = static_cast<size_t>(std::find_if_not(rest_.begin(), rest_.end(), fits) - rest_.begin());
    rest_.remove_prefix(length);
    return length;
  }
  // As many digits as there are: least to most.
  bool digits(size_t least, size_t most) {
    const size_t length = run(is_digit);
    return length >= least && length <= most;
  }
  size_t blanks() {
    return run([](char c) { return c == ' ' || c == '\t'; });
  }

 private:
  std::string_view rest_;
};

// Behind the first digits: [:59]... of a number to the base 60.
bool read_sixties(ScalarReader& at) {
  size_t count = 0;
  for (; at.one(":"); ++count) {
    const bool small = at.one("012345");
    const size_t more = at.run(is_digit);
    if (small ? more > 1 : more != 1) return false;
  }
  return count > 0;
}

bool read_exponent(ScalarReader& at) {
  if (!at.one("eE")) return true;
  return at.one("-+") && at.run(is_digit) > 0;
}

// Behind the sign.
bool is_integer(ScalarReader at) {
  if (at.word("0b")) return at.run([](char c) { return c == '0' || c == '1' || c == '_'; }) > 0 && at.done();
  if (at.word("0x")) {
    const auto hexadecimal = [](char c) { return is_figure(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); };
    return at.run(hexadecimal) > 0 && at.done();
  }
  if (at.word("0")) {
    at.run([](char c) { return (c >= '0' && c <= '7') || c == '_'; });
    return at.done();
  }
  if (!at.one("123456789")) return false;
  at.run(is_figure);
  return at.done() || (read_sixties(at) && at.done());
}

// Behind the sign, which a number that begins with its point may not have.
bool is_real(ScalarReader at, bool sign) {
  if (at.word(".")) {
    if (at.word("inf") || at.word("Inf") || at.word("INF")) return at.done();
    if (sign) return false;
    if (at.word("nan") || at.word("NaN") || at.word("NAN")) return at.done();
    if (!at.one("0123456789")) return false;
    at.run(is_figure);
    return read_exponent(at) && at.done();
  }
  if (!at.one("0123456789")) return false;
  at.run(is_figure);
  if (at.word(".")) {
    at.run(is_figure);
    return read_exponent(at) && at.done();
  }
  if (!read_sixties(at) || !at.word(".")) return false;
  at.run(is_figure);
  return at.done();
}

bool is_number(std::string_view text) {
  ScalarReader at(text);
  const bool sign = at.one("-+");
  return is_integer(at) || is_real(at, sign);
}

// 2020-01-01, or a date with a time of day, parts of a second and a zone.
bool is_date(std::string_view text) {
  if (text.size() == 10) {
    ScalarReader at(text);
    if (at.digits(4, 4) && at.one("-") && at.digits(2, 2) && at.one("-") && at.digits(2, 2) && at.done()) return true;
  }
  ScalarReader at(text);
  if (!at.digits(4, 4) || !at.one("-") || !at.digits(1, 2) || !at.one("-") || !at.digits(1, 2)) return false;
  if (!at.one("Tt") && at.blanks() == 0) return false;
  if (!at.digits(1, 2) || !at.one(":") || !at.digits(2, 2) || !at.one(":") || !at.digits(2, 2)) return false;
  if (at.one(".")) at.run(is_digit);
  if (at.done()) return true;
  at.blanks();
  if (at.one("Z")) return at.done();
  return at.one("-+") && at.digits(1, 2) && (!at.one(":") || at.digits(2, 2)) && at.done();
}

// Of the spelling of a number.
bool is_zero(const std::string& text) {
  if (text.find_first_of("nN") != std::string::npos) return false;  // an infinity, or NaN
  const bool hexadecimal = text.find('x') != std::string::npos;
  const std::string_view digits =
      std::string_view(text).substr(0, hexadecimal ? text.size() : text.find_first_of("eE"));
  return std::none_of(digits.begin(), digits.end(), [](char c) {
    return (c >= '1' && c <= '9') || (c >= 'a' && c <= 'f' && c != 'b') || (c >= 'A' && c <= 'F');
  });
}

CompatMetrics of_scalar(const YamlNode& node) {
  const std::string& text = node.text;
  if (node.is_null() || text.empty()) return {.form = Form::kFalsy, .names = {}, .text = ""};
  if (node.plain) {
    if (is_false(text)) return {.form = Form::kFalsy, .names = {}, .text = ""};
    if (is_true(text) || is_date(text)) return {.form = Form::kScalar, .names = {}, .text = ""};
    if (is_number(text)) return {.form = is_zero(text) ? Form::kFalsy : Form::kScalar, .names = {}, .text = ""};
  }
  return {.form = Form::kText, .names = {}, .text = text};
}

}  // namespace

CompatMetrics written_metrics(const YamlNode& node) {
  if (node.is_scalar()) return of_scalar(node);
  CompatMetrics metrics;
  metrics.form = node.kind == YamlNode::Kind::kMap ? Form::kMapping : Form::kList;
  for (const YamlEntry& entry : node.entries) metrics.names.push_back(entry.key);
  for (const YamlNode* item : node.items) {
    if (item->is_scalar()) metrics.names.push_back(item->text);
  }
  if (node.entries.empty() && node.items.empty()) metrics.form = Form::kFalsy;
  return metrics;
}

}  // namespace assay::discover
