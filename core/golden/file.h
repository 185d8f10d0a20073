// Whole files as bytes.
#pragma once

#include <cstddef>
#include <string>

#include "assay/status.h"

namespace assay {

inline constexpr size_t kMostFileBytes = size_t{1} << 30;  // what is read as a whole takes memory many times over

// The content of a regular file, or of a pipe that a shell has opened (/dev/stdin, /dev/fd/63). Fails with one line
// naming the path: kNotFound (no such file), kInvalid (a folder, a device, a named pipe: nobody may ever write to it;
// over `most` bytes), kInfra (unreadable).
Result<std::string> read_file(const std::string& path, size_t most = kMostFileBytes);

}  // namespace assay
