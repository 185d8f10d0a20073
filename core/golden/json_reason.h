// What a JSON library's exception has to say, without the library's own words in front of it.
#pragma once

#include <string>
#include <string_view>

namespace assay::json {

// "[json.exception.type_error.302] type must be string, but is number" → "type must be string, but is number".
inline std::string reason_of(std::string_view what) {
  const size_t bracket = what.starts_with("[json.") ? what.find("] ") : std::string_view::npos;
  return std::string(bracket == std::string_view::npos ? what : what.substr(bracket + 2));
}

}  // namespace assay::json
