// Facts of /proc about single processes.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace assay::command {

// Value of "Name:   123 kB" of a file like /proc/self/status in bytes; 0 when absent.
uint64_t proc_kilobytes(const std::filesystem::path& file, std::string_view name);

// Value of a variable in the environment that a process was executed with; empty where it has none or it cannot be
// read.
std::string proc_variable(pid_t pid, std::string_view name);

// Name of a process as the kernel has it, at most 15 bytes; "" when it is gone.
std::string proc_name(pid_t pid);

}  // namespace assay::command
