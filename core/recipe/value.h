// Values of a recipe as PyYAML's safe_load gives them, and as Python prints them.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "core/discover/yaml_tree.h"

namespace assay::recipe {

// Maps keep the order of their keys. Dates are strings in Python's spelling.
using Value = nlohmann::ordered_json;

// The tree below `node`, plain scalars resolved by YAML 1.1: null, yes/no/on/off/true/false, integers in every base
// (underscores and base 60 too), floats. An integer beyond 64 bits becomes a string of its digits.
Value to_value(const discover::YamlNode& node);

// str(value) in Python: "None", "True", "1.5", "['a', 'b']".
std::string python_str(const Value& value);

// repr(value) in Python; with `ascii` as ascii(value) does.
std::string python_repr(const Value& value, bool ascii = false);

// Name of the value's type in Python: "str", "int", "float", "bool", "NoneType", "list", "dict".
std::string_view python_type(const Value& value);

}  // namespace assay::recipe
