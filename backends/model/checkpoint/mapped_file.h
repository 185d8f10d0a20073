// A regular file mapped read-only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "assay/status.h"

namespace assay::model {

// Which file of the machine it is, whatever its path says by now.
struct FileIdentity {
  uint64_t device = 0;
  uint64_t inode = 0;
  bool operator==(const FileIdentity&) const = default;
};

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
  const FileIdentity& identity() const { return identity_; }

  // Gives resident pages of the mapping back to the system; they are read again when touched. Safe beside readers.
  void drop_pages() const;

 private:
  MappedFile(std::string path, std::span<const std::byte> bytes, FileIdentity identity)
      : path_(std::move(path)), bytes_(bytes), identity_(identity) {}

  std::string path_;
  std::span<const std::byte> bytes_;
  FileIdentity identity_;
};

}  // namespace assay::model
