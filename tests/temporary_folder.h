// A folder for the files of one test; of the standard library alone, so that the tests of every room can use it.
#pragma once

#include <stdlib.h>  // NOLINT: mkdtemp

#include <filesystem>
#include <stdexcept>
#include <string>

namespace assay::tests {

// Made below the system's temporary folder under a name that no other process has, whatever runs beside it (the same
// suite from another checkout too); removed with all that is in it when the object goes. Its path has no links.
// Throws std::runtime_error where it cannot be made.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name =
        (std::filesystem::canonical(std::filesystem::temp_directory_path()) / "assay-test-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error(name + ": no temporary folder");
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace assay::tests
