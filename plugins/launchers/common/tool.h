// Commands of a launcher's system (sbatch, ssh ...), run to their end.
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "assay/status.h"

namespace assay::launchers {

struct ToolOutput {
  int code = 0;            // exit code; 128 + signal where a signal ended it
  bool timed_out = false;  // it was ended at the time limit
  std::string out;
  std::string err;

  bool ok() const { return code == 0 && !timed_out; }
  // What it said, on one line, stderr first: "sbatch: error: ..."; else how it ended.
  std::string words() const;
};

// This process's environment.
std::map<std::string, std::string> own_environment();

// Runs a command with this process's environment and no input; its output passes through files in `folder`. Fails with
// kNotFound or kInfra where it cannot be run at all.
Result<ToolOutput> run_tool(const std::vector<std::string>& argv, std::chrono::milliseconds limit,
                            const std::filesystem::path& folder);

// Writes a file that nobody else can read, executable. Fails with kInfra.
Status write_script(const std::filesystem::path& file, const std::string& text);

}  // namespace assay::launchers
