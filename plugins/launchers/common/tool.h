// Commands of a launcher's system (sbatch, ssh ...), run to their end.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "assay/status.h"
#include "core/command/command.h"

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

// A command that runs, with this process's environment and no input; its output passes through files in a folder, which
// are gone with it. Move-only. Destroying it ends its processes.
class Tool {
 public:
  // Fails with kNotFound or kInfra where it cannot be run at all.
  static Result<Tool> start(const std::vector<std::string>& argv, std::chrono::milliseconds limit,
                            const std::filesystem::path& folder);

  // What came of it; nullopt while it runs. Never waits; to be called every few milliseconds, and not after its end.
  std::optional<ToolOutput> poll();
  // The same, waiting for the end.
  ToolOutput wait();

 private:
  struct Files;
  Tool(std::shared_ptr<Files> files, command::Command command);
  ToolOutput output(const command::CommandEnd& end) const;

  std::shared_ptr<Files> files_;
  command::Command command_;
};

// Tool::start() and wait().
Result<ToolOutput> run_tool(const std::vector<std::string>& argv, std::chrono::milliseconds limit,
                            const std::filesystem::path& folder);

// Writes a file that nobody else can read, executable. Fails with kInfra.
Status write_script(const std::filesystem::path& file, const std::string& text);

}  // namespace assay::launchers
