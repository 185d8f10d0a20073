#include "core/compat/py_value.h"

#include <algorithm>
#include <string_view>

namespace assay::compat {
namespace {

using Kind = Value::Kind;

// One that stands inside a list or a dict.
bool equal_inside(const Value& a, const Value& b) {
  if (a.kind == Kind::kFloat && b.kind == Kind::kFloat && a.number != a.number && b.number != b.number) return true;
  return equal(a, b);
}

bool equal_dicts(const Value& a, const Value& b) {
  return a.members.size() == b.members.size() && std::all_of(a.members.begin(), a.members.end(), [&](const auto& own) {
           const Value* other = b.find(own.key);
           return other != nullptr && equal_inside(own.value, *other);
         });
}

}  // namespace

const Value* Value::find(std::u32string_view key) const {
  const auto found = std::find_if(members.begin(), members.end(), [&](const auto& one) { return one.key == key; });
  return found == members.end() ? nullptr : &found->value;
}

const char* type_name(const Value& value) {
  switch (value.kind) {
    case Kind::kNone:
      return "NoneType";
    case Kind::kBool:
      return "bool";
    case Kind::kInt:
    case Kind::kBigInt:
      return "int";
    case Kind::kFloat:
      return "float";
    case Kind::kText:
      return "str";
    case Kind::kList:
      return "list";
    case Kind::kDict:
      return "dict";
  }
  return "?";
}

bool equal(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) return compare(a, b) == Order::kEqual;
  if (a.kind != b.kind) return false;
  switch (a.kind) {
    case Kind::kText:
      return a.text == b.text;
    case Kind::kList:
      return std::equal(a.items.begin(), a.items.end(), b.items.begin(), b.items.end(), equal_inside);
    case Kind::kDict:
      return equal_dicts(a, b);
    default:
      return true;  // None
  }
}

Value float_value(double number) {
  Value value;
  value.kind = Kind::kFloat;
  value.number = number;
  return value;
}

std::string to_utf8(std::u32string_view text) {
  std::string out;
  for (char32_t c : text) {
    if (c >= 0xD800 && c < 0xE000) c = 0xFFFD;
    if (c < 0x80) {
      out += static_cast<char>(c);
    } else if (c < 0x800) {
      out += static_cast<char>(0xC0 | (c >> 6));
      out += static_cast<char>(0x80 | (c & 0x3F));
    } else if (c < 0x10000) {
      out += static_cast<char>(0xE0 | (c >> 12));
      out += static_cast<char>(0x80 | ((c >> 6) & 0x3F));
      out += static_cast<char>(0x80 | (c & 0x3F));
    } else {
      out += static_cast<char>(0xF0 | (c >> 18));
      out += static_cast<char>(0x80 | ((c >> 12) & 0x3F));
      out += static_cast<char>(0x80 | ((c >> 6) & 0x3F));
      out += static_cast<char>(0x80 | (c & 0x3F));
    }
  }
  return out;
}

}  // namespace assay::compat
