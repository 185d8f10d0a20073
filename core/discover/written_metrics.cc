#include "core/discover/written_metrics.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <regex>

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

bool is_number(const std::string& text) {
  static const std::regex kInteger(
      "[-+]?0b[01_]+|[-+]?0[0-7_]+|[-+]?(0|[1-9][0-9_]*)|[-+]?0x[0-9a-fA-F_]+|[-+]?[1-9][0-9_]*(:[0-5]?[0-9])+");
  static const std::regex kReal(
      "[-+]?[0-9][0-9_]*\\.[0-9_]*([eE][-+][0-9]+)?|\\.[0-9][0-9_]*([eE][-+][0-9]+)?|"
      "[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+\\.[0-9_]*|[-+]?\\.(inf|Inf|INF)|\\.(nan|NaN|NAN)");
  return std::regex_match(text, kInteger) || std::regex_match(text, kReal);
}

bool is_date(const std::string& text) {
  static const std::regex kDate(
      "[0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{4}-[0-9][0-9]?-[0-9][0-9]?([Tt]|[ \\t]+)[0-9][0-9]?:[0-9]{2}:[0-9]{2}"
      "(\\.[0-9]*)?([ \\t]*(Z|[-+][0-9][0-9]?(:[0-9]{2})?))?");
  return std::regex_match(text, kDate);
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
