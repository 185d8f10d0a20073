// str.format of Python over named fields: how names, builds and scripts of recipes are filled in.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "assay/status.h"
#include "core/recipe/value.h"

namespace assay::recipe {

// The value of a field by its name; nullptr: there is none. Lives as long as the call.
using Fields = std::function<const Value*(std::string_view name)>;

inline constexpr size_t kMostFormatted = 16u << 20;  // bytes of one formatted text
inline constexpr size_t kWidestField = 4096;         // code points that a format spec may pad a field to

// `text` with {field}, {field[key]}, {field!r} and {field:spec} replaced and {{ }} as literal braces, exactly as Python
// does for strings, integers, booleans and None. Fails with kInvalid where Python raises (unknown field, single brace,
// a spec that does not fit the value) and with kUnsupported where this is not done as Python does it: positional
// fields, attributes, specs of floats, zeros filled up with separators, a text that grows beyond the limits. Messages
// quote the field.
Result<std::string> python_format(std::string_view text, const Fields& fields);

// The names of all fields that `text` uses, in order, nested ones too; as far as it is well formed.
std::vector<std::string> format_fields(std::string_view text);

}  // namespace assay::recipe
