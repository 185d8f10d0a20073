// JSON text without a document in between: for listings of many cases.
#pragma once

#include <string>
#include <string_view>

namespace assay::discover {

// Appends `text` as a JSON string, escaped like Python's json.dumps with ensure_ascii=False. Invalid UTF-8 (a file
// name) becomes U+FFFD.
void append_json_string(std::string& out, std::string_view text);

}  // namespace assay::discover
