// Result files of any form, read by events of a JSON parser.
#pragma once

#include <string>
#include <string_view>

#include "assay/golden.h"
#include "assay/status.h"

namespace assay::json {

// What read_results_text promises but for order, path and form: requests come in the order of the text. `name` is for
// messages. Thread-safe.
Result<ResultSet> read_plainly(std::string_view document, const std::string& name);

}  // namespace assay::json
