// Text made safe for XML 1.0.
#pragma once

#include <string>
#include <string_view>

namespace assay::report {

// The reference that stands for & < > " or ' in XML and HTML; empty for every other code point.
std::string_view markup_entity(char32_t value);

// Escapes & < > " ' and writes control characters of attribute values as references (tab, newline). Each byte that is
// not UTF-8 (surrogates are not) and code points that XML 1.0 forbids (controls, U+FFFE, U+FFFF) become U+FFFD.
std::string xml_escape(std::string_view text);

}  // namespace assay::report
