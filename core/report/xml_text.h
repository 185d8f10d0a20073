// Text made safe for XML 1.0.
#pragma once

#include <string>
#include <string_view>

namespace assay::report {

// Escapes & < > " ' and writes control characters of attribute values as references (tab, newline). Bytes that are not
// UTF-8 and code points that XML 1.0 forbids (controls, surrogates, U+FFFE, U+FFFF) become U+FFFD.
std::string xml_escape(std::string_view text);

}  // namespace assay::report
