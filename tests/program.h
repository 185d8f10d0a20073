// Runs the programs of this build from system tests.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "tests/temporary_folder.h"

namespace assay::tests {

struct Output {
  int code = -1;    // exit code; 128 + signal where a signal ended it
  std::string out;  // stdout
  std::string err;  // stderr
};

// Whether a variable of the environment that the test program was started in stays in it, and so reaches all that the
// tests start: what systems, compilers and sanitizers need. All others are unset before the first test (CI,
// ASSAY_PLUGIN_PATH, CHECKPOINT_LOAD_PATH and whatever else a case or a command may read).
bool is_handed_on(std::string_view name);

// Runs build/bin/PROGRAM with `words` in `folder` (empty: the source folder), stdin from `input`.
Output run_program(const std::string& program, const std::vector<std::string>& words, const std::string& input = "",
                   const std::filesystem::path& folder = {});

// Likewise with an executable by its path.
Output run_file(const std::filesystem::path& executable, const std::vector<std::string>& words,
                const std::string& input = "", const std::filesystem::path& folder = {});

// The executable of this name on the PATH; empty where there is none.
std::filesystem::path find_executable(const std::string& name);

void write_file(const std::filesystem::path& path, const std::string& text);  // makes the folders it needs
std::string read_file(const std::filesystem::path& path);                     // "" when it cannot be read

// The folder of shared test data beside the checkout; empty where it is absent.
std::filesystem::path shared_folder();

}  // namespace assay::tests
