// The system's cache of files.
#pragma once

#include <string>
#include <vector>

#include "assay/status.h"

namespace assay::tools {

// Takes the files out of the cache, so that the next read comes from the disk. Nobody may have them mapped. kInfra when
// more than a hundredth of a file stays (a file system in memory keeps all).
Status drop_from_cache(const std::vector<std::string>& files);

}  // namespace assay::tools
