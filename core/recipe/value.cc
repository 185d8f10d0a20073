#include "core/recipe/value.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>

#include "core/golden/text.h"

namespace assay::recipe {
namespace {

bool digit(char c) { return c >= '0' && c <= '9'; }

bool all_of(std::string_view text, std::string_view allowed) {
  return text.find_first_not_of(allowed) == std::string_view::npos;
}

bool one_of(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

std::string without_underscores(std::string_view text) {
  std::string digits(text);
  std::erase(digits, '_');
  return digits;
}

// Takes a leading sign off; true for a minus.
bool take_sign(std::string_view& text) {
  const bool minus = text.starts_with('-');
  if (minus || text.starts_with('+')) text.remove_prefix(1);
  return minus;
}

// ":NN" groups of base 60, each of one or two digits below 60; at least one.
bool base_60_groups(std::string_view text) {
  if (text.empty()) return false;
  while (!text.empty()) {
    if (text[0] != ':') return false;
    const size_t end = std::min(text.find(':', 1), text.size());
    const std::string_view group = text.substr(1, end - 1);
    if (group.empty() || group.size() > 2 || !std::all_of(group.begin(), group.end(), digit)) return false;
    if (group.size() == 2 && group[0] > '5') return false;
    text.remove_prefix(end);
  }
  return true;
}

// `digits` in `base` with its sign; a string of digits where 64 bits do not hold it.
Value integer(bool minus, const std::string& digits, int base) {
  int64_t number = 0;
  const std::string text = (minus ? "-" : "") + digits;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (error == std::errc() && end == text.data() + text.size()) return number;
  return text;
}

Value base_60(bool minus, std::string_view text) {
  double number = 0;
  bool whole = true;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(':', at), text.size());
    const std::string part = without_underscores(text.substr(at, end - at));
    whole = whole && part.find('.') == std::string::npos;
    number = number * 60 + std::strtod(part.c_str(), nullptr);
    at = end + 1;
  }
  if (minus) number = -number;
  if (whole && std::abs(number) < 9e15) return static_cast<int64_t>(number);
  return number;
}

std::optional<Value> as_integer(std::string_view text) {
  const bool minus = take_sign(text);
  if (text.empty() || !digit(text[0])) return std::nullopt;
  const std::string digits = without_underscores(text);
  if (text.starts_with("0b") && text.size() > 2 && all_of(text.substr(2), "01_")) {
    return digits.size() > 2 ? std::optional(integer(minus, digits.substr(2), 2)) : std::nullopt;
  }
  if (text.starts_with("0x") && text.size() > 2 && all_of(text.substr(2), "0123456789abcdefABCDEF_")) {
    return digits.size() > 2 ? std::optional(integer(minus, digits.substr(2), 16)) : std::nullopt;
  }
  if (text == "0") return Value(0);
  if (text[0] == '0') return all_of(text, "01234567_") ? std::optional(integer(minus, digits, 8)) : std::nullopt;
  if (all_of(text, "0123456789_")) return integer(minus, digits, 10);
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos || !all_of(text.substr(0, colon), "0123456789_")) return std::nullopt;
  return base_60_groups(text.substr(colon)) ? std::optional(base_60(minus, text)) : std::nullopt;
}

std::optional<Value> as_float(std::string_view text) {
  const size_t whole = text.size();
  const bool minus = take_sign(text);
  const bool is_signed = text.size() < whole;
  if (one_of(text, {".inf", ".Inf", ".INF"})) {
    return (minus ? -1 : 1) * std::numeric_limits<double>::infinity();
  }
  const size_t dot = text.find('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const std::string_view before = text.substr(0, dot);
  std::string_view after = text.substr(dot + 1);
  const size_t colon = before.find(':');
  if (colon != std::string_view::npos) {
    const bool form = digit(before[0]) && all_of(before.substr(0, colon), "0123456789_") &&
                      base_60_groups(before.substr(colon)) && all_of(after, "0123456789_");
    return form ? std::optional(base_60(minus, text)) : std::nullopt;
  }
  if (const size_t e = after.find_first_of("eE"); e != std::string_view::npos) {
    const std::string_view exponent = after.substr(e + 1);
    if (exponent.size() < 2 || (exponent[0] != '+' && exponent[0] != '-')) return std::nullopt;
    if (!std::all_of(exponent.begin() + 1, exponent.end(), digit)) return std::nullopt;
    after = after.substr(0, e);
  }
  const bool form = before.empty() ? !is_signed && !after.empty() && digit(after[0]) : digit(before[0]);
  if (!form || !all_of(before, "0123456789_") || !all_of(after, "0123456789_")) return std::nullopt;
  const double number = std::strtod(without_underscores(text).c_str(), nullptr);
  return minus ? -number : number;
}

Value plain_scalar(const std::string& text) {
  if (one_of(text, {"", "~", "null", "Null", "NULL"})) return nullptr;
  if (one_of(text, {"yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"})) return true;
  if (one_of(text, {"no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"})) return false;
  if (one_of(text, {".nan", ".NaN", ".NAN"})) return std::numeric_limits<double>::quiet_NaN();
  if (auto number = as_integer(text)) return *number;
  if (auto number = as_float(text)) return *number;
  return text;
}

std::string quoted(std::string_view text, bool ascii) {
  const bool double_quotes = text.find('\'') != std::string_view::npos && text.find('"') == std::string_view::npos;
  const char quote = double_quotes ? '"' : '\'';
  std::string out(1, quote);
  for (size_t at = 0; at < text.size();) {
    const text::CodePoint point = text::decode(text, at);
    const char32_t c = point.value;
    if (c == static_cast<unsigned char>(quote) || c == '\\') {
      (out += '\\') += static_cast<char>(c);
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\t') {
      out += "\\t";
    } else if (c < 0x20 || c == 0x7f || (c >= 0x80 && c < 0xa1) || (ascii && c < 0x100 && c > 0x7e)) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned>(c));
    } else if (ascii && c > 0x7e) {
      out += c < 0x10000 ? fmt::format("\\u{:04x}", static_cast<unsigned>(c))
                         : fmt::format("\\U{:08x}", static_cast<unsigned>(c));
    } else {
      out.append(text, at, point.length);
    }
    at += point.length;
  }
  return out + quote;
}

}  // namespace

Value to_value(const discover::YamlNode& node) {
  switch (node.kind) {
    case discover::YamlNode::Kind::kScalar:
      return node.plain ? plain_scalar(node.text) : Value(node.text);
    case discover::YamlNode::Kind::kSequence: {
      Value list = Value::array();
      for (const discover::YamlNode* item : node.items) list.push_back(to_value(*item));
      return list;
    }
    case discover::YamlNode::Kind::kMap: {
      Value map = Value::object();
      auto& entries = map.get_ref<Value::object_t&>();  // keys are unique already
      for (const discover::YamlEntry& entry : node.entries) entries.emplace_back(entry.key, to_value(*entry.value));
      return map;
    }
  }
  return nullptr;
}

std::string python_str(const Value& value) { return value.is_string() ? value.get<std::string>() : python_repr(value); }

std::string python_repr(const Value& value, bool ascii) {
  if (value.is_null()) return "None";
  if (value.is_boolean()) return value.get<bool>() ? "True" : "False";
  if (value.is_number_integer()) return std::to_string(value.get<int64_t>());
  if (value.is_number()) return text::python_repr(value.get<double>());
  if (value.is_string()) return quoted(value.get_ref<const std::string&>(), ascii);
  const bool list = value.is_array();
  std::string out(1, list ? '[' : '{');
  for (const auto& [key, item] : value.items()) {
    if (out.size() > 1) out += ", ";
    if (!list) out += quoted(key, ascii) + ": ";
    out += python_repr(item, ascii);
  }
  return out + (list ? ']' : '}');
}

std::string_view python_type(const Value& value) {
  if (value.is_null()) return "NoneType";
  if (value.is_boolean()) return "bool";
  if (value.is_number_integer()) return "int";
  if (value.is_number()) return "float";
  if (value.is_string()) return "str";
  return value.is_array() ? "list" : "dict";
}

}  // namespace assay::recipe
