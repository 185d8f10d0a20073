// A folder for files that are of no use once the process has ended.
#pragma once

#include <filesystem>
#include <memory>

#include "assay/status.h"

namespace assay::bench {

// Made below the system's temporary folder under a name of its own; removed with all that is in it when the object
// goes, and where SIGINT, SIGTERM or SIGHUP ends the process, also while files are being written into it. One at a time
// in a process. Move-only.
class TemporaryFolder {
 public:
  // kInfra where there is no place for it.
  static Result<TemporaryFolder> make();

  TemporaryFolder(TemporaryFolder&&) noexcept;
  TemporaryFolder& operator=(TemporaryFolder&&) noexcept;
  ~TemporaryFolder();

  const std::filesystem::path& path() const { return path_; }

 private:
  class SignalWatch;
  explicit TemporaryFolder(std::filesystem::path path);

  std::filesystem::path path_;
  std::unique_ptr<SignalWatch> watch_;  // null: moved from
};

}  // namespace assay::bench
