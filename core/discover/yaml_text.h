// Makes file bytes fit for the YAML scanner.
#pragma once

#include <string>
#include <string_view>

#include "assay/status.h"

namespace assay::discover {

// Drops a UTF-8 byte-order mark and turns CR LF and CR into LF, in place. Fails with kInvalid ("file:line:column: ...")
// on UTF-16 or UTF-32, on invalid UTF-8 and on characters that YAML forbids (controls, U+FFFE, U+FFFF).
Status prepare_yaml_text(std::string& text, const std::string& file);

// Length of the valid UTF-8 sequence at `at` (1-4) with its code point, or 0: overlong forms and surrogates are
// invalid.
size_t utf8_sequence(std::string_view text, size_t at, char32_t& code_point);

// "file:line:column: ", columns in bytes from 1.
std::string at_place(const std::string& file, int line, int column);

}  // namespace assay::discover
