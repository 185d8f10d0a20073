#include "core/recipe/format_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "core/golden/text.h"
#include "core/recipe/format.h"

namespace assay::recipe {
namespace {

struct Spec {
  std::string fill = " ";
  char align = '\0';  // '<', '>', '=', '^'
  char sign = '\0';   // '+', '-', ' '
  bool alternate = false;
  bool zero = false;
  size_t width = 0;
  char grouping = '\0';  // ',' or '_'
  std::optional<size_t> precision;
  char type = '\0';
};

bool is_align(char c) { return c == '<' || c == '>' || c == '=' || c == '^'; }

// Takes digits off; nullopt where there are none, or too many.
std::optional<size_t> take_number(std::string_view& text) {
  size_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return number;
}

bool take(std::string_view& text, char c) {
  if (!text.starts_with(c)) return false;
  text.remove_prefix(1);
  return true;
}

Result<Spec> parse(std::string_view text) {
  const std::string shown(text);
  const auto bad = [&shown](const char* why) { return invalid(fmt::format("format spec '{}': {}", shown, why)); };
  Spec spec;
  const size_t first = text.empty() ? 0 : text::decode(text, 0).length;
  if (first < text.size() && is_align(text[first])) {
    spec.fill = text.substr(0, first);
    spec.align = text[first];
    text.remove_prefix(first + 1);
  } else if (!text.empty() && is_align(text[0])) {
    spec.align = text[0];
    text.remove_prefix(1);
  }
  const bool own_fill = first > 0 && spec.align != '\0' && shown[0] != spec.align;
  if (!text.empty() && (text[0] == '+' || text[0] == '-' || text[0] == ' ')) {
    spec.sign = text[0];
    text.remove_prefix(1);
  }
  spec.alternate = take(text, '#');
  if (!own_fill && take(text, '0')) {
    spec.zero = true;
    spec.fill = "0";
  }
  const auto is_digit = [&text] { return !text.empty() && text[0] >= '0' && text[0] <= '9'; };
  if (is_digit()) {
    const auto width = take_number(text);
    if (!width || *width > kWidestField)
      return unsupported(fmt::format("format spec '{}': a width above {}", shown, kWidestField));
    spec.width = *width;
  }
  if (!text.empty() && (text[0] == ',' || text[0] == '_')) {
    spec.grouping = text[0];
    text.remove_prefix(1);
    if (!text.empty() && (text[0] == ',' || text[0] == '_')) return bad("two grouping characters");
  }
  if (take(text, '.')) {
    if (!is_digit()) return bad("a precision is expected after the dot");
    spec.precision = take_number(text);
    if (!spec.precision) return bad("too many digits in the precision");
  }
  if (text.size() > 1) return bad("it is no format specifier");
  if (!text.empty()) spec.type = text[0];
  return spec;
}

// Fills `body` up to the width; `prefix` (sign, 0x) stands before the fill with '='.
std::string padded(const Spec& spec, char align, const std::string& prefix, const std::string& body) {
  const size_t length = text::count(prefix) + text::count(body);
  const size_t missing = spec.width > length ? spec.width - length : 0;
  const auto fill = [&spec](size_t times) {
    std::string out;
    for (size_t i = 0; i < times; ++i) out += spec.fill;
    return out;
  };
  if (align == '<') return prefix + body + fill(missing);
  if (align == '>') return fill(missing) + prefix + body;
  if (align == '=') return prefix + fill(missing) + body;
  return fill(missing / 2) + prefix + body + fill(missing - missing / 2);
}

Result<std::string> format_string(const std::string& value, const Spec& spec, const std::string& shown) {
  const auto bad = [&shown](const char* why) {
    return invalid(fmt::format("format spec '{}' of a string: {}", shown, why));
  };
  if (spec.type != '\0' && spec.type != 's') return bad("its type is not s");
  if (spec.sign != '\0') return bad("a sign is for numbers");
  if (spec.alternate) return bad("# is for numbers");
  if (spec.align == '=') return bad("alignment = is for numbers");
  if (spec.grouping != '\0') return bad("grouping is for numbers");
  const std::string_view cut = spec.precision ? text::prefix(value, *spec.precision) : std::string_view(value);
  return padded(spec, spec.align == '\0' ? '<' : spec.align, "", std::string(cut));
}

std::string grouped(const std::string& digits, char separator, size_t size) {
  if (separator == '\0') return digits;
  std::string out;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % size == 0) out += separator;
    out += digits[i];
  }
  return out;
}

Result<std::string> format_integer(int64_t value, const Spec& spec, const std::string& shown) {
  const auto bad = [&shown](const char* why) {
    return invalid(fmt::format("format spec '{}' of a number: {}", shown, why));
  };
  const char type = spec.type == '\0' || spec.type == 'n' ? 'd' : spec.type;
  if (std::string_view("eEfFgG%c").find(type) != std::string_view::npos) {
    return unsupported(fmt::format("format spec '{}': type {} is not supported; use d, b, o, x or X", shown, type));
  }
  if (std::string_view("dboxX").find(type) == std::string_view::npos) return bad("its type is not one of d b o x X n");
  if (spec.precision) return bad("a precision is not for whole numbers");
  if (spec.grouping == ',' && type != 'd') return bad("commas are for decimal numbers");
  if (spec.grouping != '\0' && spec.type == 'n') return bad("grouping does not go with n");
  if (spec.grouping != '\0' && spec.fill == "0" && spec.width > 0 && (spec.align == '=' || spec.align == '\0')) {
    return unsupported(fmt::format("format spec '{}': zeros filled up with separators are not supported", shown));
  }
  const uint64_t size = value < 0 ? ~static_cast<uint64_t>(value) + 1 : static_cast<uint64_t>(value);
  std::string digits;
  std::string prefix = value < 0 ? "-" : spec.sign == '+' ? "+" : spec.sign == ' ' ? " " : "";
  switch (type) {
    case 'b':
      digits = fmt::format("{:b}", size);
      break;
    case 'o':
      digits = fmt::format("{:o}", size);
      break;
    case 'x':
      digits = fmt::format("{:x}", size);
      break;
    case 'X':
      digits = fmt::format("{:X}", size);
      break;
    default:
      digits = std::to_string(size);
  }
  if (spec.alternate && type != 'd') (prefix += '0') += type;
  const char align = spec.align != '\0' ? spec.align : spec.zero ? '=' : '>';
  return padded(spec, align, prefix, grouped(digits, spec.grouping, type == 'd' ? 3 : 4));
}

}  // namespace

Result<std::string> apply_format_spec(const Value& value, std::string_view spec) {
  if (spec.empty()) return python_str(value);
  const std::string shown(spec);
  const Result<Spec> parsed = parse(spec);
  if (!parsed) return parsed.status();
  if (value.is_string()) return format_string(value.get_ref<const std::string&>(), *parsed, shown);
  if (value.is_boolean()) return format_integer(value.get<bool>() ? 1 : 0, *parsed, shown);
  if (value.is_number_integer()) return format_integer(value.get<int64_t>(), *parsed, shown);
  if (value.is_number()) return unsupported(fmt::format("format spec '{}' of a float is not supported", shown));
  return invalid(fmt::format("format spec '{}': a value of type {} takes none", shown, python_type(value)));
}

}  // namespace assay::recipe
