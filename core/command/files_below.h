// The files of a folder, for those who are to change all of them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "assay/status.h"

namespace assay::command {

enum class Walk : uint8_t { kFolderAlone, kAndThoseBelow };

// Adds to `files` the regular files, links apart, before the caller changes any; subfolders that may not be entered are
// left out. A folder that is not there has none. Fails with kInfra where the walk breaks off, with those found so far.
Status files_below(const std::filesystem::path& folder, Walk walk, std::vector<std::filesystem::path>* files);

}  // namespace assay::command
