// Whole files as bytes.
#pragma once

#include <string>

#include "assay/status.h"

namespace assay {

// The content of a regular file, or of a pipe that a shell has opened (/dev/stdin, /dev/fd/63). Fails with one line
// naming the path: kNotFound (no such file), kInvalid (a folder, a device, a named pipe: nobody may ever write to it),
// kInfra (unreadable).
Result<std::string> read_file(const std::string& path);

}  // namespace assay
