// Options of the command line that are JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "assay/status.h"

namespace assay::cli {

// The object that `word`, given as `option`, is. kInvalid, without a quotation (there may be secrets): no JSON object,
// or a name that occurs twice in one object, of which one value would be dropped. `example` is shown.
Result<nlohmann::ordered_json> parse_json_option(const std::string& option, const std::string& word,
                                                 const std::string& example);

}  // namespace assay::cli
