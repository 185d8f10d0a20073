// The end of a log, fit for one line of a message.
#pragma once

#include <filesystem>
#include <string>

#include "core/command/redact.h"

namespace assay::command {

// The last lines (at most `lines`, at most `bytes` in all) joined with " | ", control characters as '?'; "" when there
// is nothing. What `redactor` knows is taken out before anything is cut, so that no part of a value is left, and so is
// what may be the beginning of one at the end of a log that is still written.
std::string last_lines(const std::filesystem::path& file, const Redactor& redactor, size_t lines = 3,
                       size_t bytes = 400);

}  // namespace assay::command
