// Whole files as bytes.
#pragma once

#include <string>

#include "assay/status.h"

namespace assay {

// The content of a regular file or pipe. Fails with one line naming the path: kNotFound (no such file), kInvalid
// (a folder), kInfra (unreadable).
Result<std::string> read_file(const std::string& path);

}  // namespace assay
