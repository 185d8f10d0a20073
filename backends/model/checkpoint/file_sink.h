// A file being written from front to back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "assay/status.h"

namespace assay::model {

// Buffered. After a failure further writes do nothing; close() reports the first one. Not thread-safe.
class FileSink {
 public:
  static Result<std::unique_ptr<FileSink>> create(const std::string& path);  // replaces an existing file
  ~FileSink();
  FileSink(const FileSink&) = delete;
  FileSink& operator=(const FileSink&) = delete;

  void write(std::span<const std::byte> data);
  void write(std::string_view text) { write({reinterpret_cast<const std::byte*>(text.data()), text.size()}); }
  uint64_t offset() const { return offset_; }  // bytes written so far
  bool failed() const { return error_ != 0; }  // close() says how
  Status close();                              // kInfra, naming the path

 private:
  FileSink(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  void flush(std::span<const std::byte> data);

  std::string path_;
  int fd_;
  uint64_t offset_ = 0;
  int error_ = 0;  // errno of the first failure
  std::vector<std::byte> buffer_;
};

}  // namespace assay::model
