// One line of a JSON-lines file: an object from which one field is wanted. Other fields are admitted and skipped.
// Failures are kInvalid in one line, without file or line number (the caller knows them: Status::with):
// an empty line, not JSON, not an object, a key twice, the field missing or of another type, invalid UTF-8, a lone
// surrogate escape. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/include/assay/status.h"

namespace assay::model {

// The string in `field`: well-formed UTF-8.
Result<std::string> json_line_text(std::string_view line, std::string_view field);

// The list of 32-bit integers in `field`.
Result<std::vector<int32_t>> json_line_ids(std::string_view line, std::string_view field);

}  // namespace assay::model
