// A regular file mapped read-only.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "assay/status.h"

namespace assay::model {

// Owns the mapping; the file descriptor is closed after mapping. Reading is thread-safe. The file must not shrink while
// it is mapped. An empty file maps to an empty span.
class MappedFile {
 public:
  // kNotFound when absent, kInvalid when it is no regular file, kInfra on other failures; messages name the path.
  static Result<std::shared_ptr<const MappedFile>> open(const std::string& path);

  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const std::string& path() const { return path_; }
  std::span<const std::byte> bytes() const { return bytes_; }

  // Gives resident pages of the mapping back to the system; they are read again when touched. Safe beside readers.
  void drop_pages() const;

 private:
  MappedFile(std::string path, std::span<const std::byte> bytes) : path_(std::move(path)), bytes_(bytes) {}

  std::string path_;
  std::span<const std::byte> bytes_;
};

}  // namespace assay::model
