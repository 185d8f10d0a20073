// Report files are replaced as a whole: a reader sees the old one or the new one.
#pragma once

#include <string>
#include <string_view>

#include "assay/status.h"

namespace assay::report {

// Through a temporary file beside `path`. Fails with kInfra, naming the path and `what` it was to be.
Status write_report(const std::string& path, std::string_view text, const std::string& what);

}  // namespace assay::report
