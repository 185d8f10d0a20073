// Report files are replaced as a whole: a reader sees the old one or the new one.
#pragma once

#include <string>
#include <string_view>

#include "assay/status.h"

namespace assay::report {

// replace_file: through a temporary file beside `path`; into a device or pipe. Fails with kInfra, naming the path and
// `what` it was to be.
Status write_report(const std::string& path, std::string_view text, const std::string& what);

}  // namespace assay::report
