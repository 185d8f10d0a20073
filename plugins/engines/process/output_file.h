// The file that a command writes: whether its words name one, and what lies there before it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "assay/status.h"

namespace assay::engines {

// Whether a word is `path`, or names it as a script would: "--output=path", "run > path". Not within a longer path; ""
// is in none.
bool names_path(const std::vector<std::string>& words, const std::string& path);

// Removes what an earlier command left at `file`: a file or a link. Fails with kInfra, and nothing is removed, where
// something else is there (a folder, a device, a pipe); also where it cannot be removed.
Status remove_earlier(const std::filesystem::path& file);

}  // namespace assay::engines
