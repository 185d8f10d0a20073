// JSON as Python reads it: NaN and infinities, the last of duplicate keys, integers of any size, surrogates.
#pragma once

#include <string>
#include <string_view>

#include "core/compat/py_value.h"

namespace assay::compat {

// Nesting beyond which we answer RecursionError; Python's own limit depends on its version.
inline constexpr int kMostNesting = 900;

// The text of a file opened for reading; UnicodeDecodeError where it is no UTF-8.
std::u32string decode_utf8(std::string_view bytes);

// json.loads. Throws PyError: JSONDecodeError, ValueError (an integer of more than 4,300 digits), RecursionError.
Value load_json(std::u32string_view text);

}  // namespace assay::compat
