// Reads ranges of files without mapping them: no page of theirs becomes resident in the process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "assay/status.h"
#include "backends/model/checkpoint/mapped_file.h"

namespace assay::model {

// Keeps the file of the last read() open. Not thread-safe: one for each thread.
class FileReader {
 public:
  FileReader() = default;
  ~FileReader();
  FileReader(const FileReader&) = delete;
  FileReader& operator=(const FileReader&) = delete;

  // Fills `to` from byte `offset` of the file. Naming the path: kNotFound when absent, kInvalid when it ends before,
  // kInfra when the system refuses.
  Status read(const std::string& path, uint64_t offset, std::span<std::byte> to);

  // The same of the file that is mapped there; kInvalid too when another one has its path by now.
  Status read(const MappedFile& file, uint64_t offset, std::span<std::byte> to);

 private:
  Status open(const std::string& path);

  std::string path_;
  FileIdentity identity_;
  int fd_ = -1;
};

}  // namespace assay::model
