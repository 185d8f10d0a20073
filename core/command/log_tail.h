// The end of a log, fit for one line of a message.
#pragma once

#include <filesystem>
#include <string>

namespace assay::command {

// The last lines (at most `lines`, at most `bytes` in all) joined with " | ", control characters as '?'; "" when there
// is nothing.
std::string last_lines(const std::filesystem::path& file, size_t lines = 3, size_t bytes = 400);

}  // namespace assay::command
