// Names that occur twice in one object of a JSON text. Readers take one of the two values, each its own.
#pragma once

#include <set>
#include <string>
#include <string_view>

namespace assay::json {

struct KeyScan {
  std::set<std::string> twice;  // names that occur more than once in one object, at any depth
  std::string error;            // why the text is no JSON, and the rest of it was not looked at; "": it is
};

KeyScan scan_keys(std::string_view text);

// One of `twice` in quotes and shortened; "" where there is none.
std::string repeated_key(std::string_view text);

}  // namespace assay::json
