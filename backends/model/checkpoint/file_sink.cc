#include "backends/model/checkpoint/file_sink.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace assay::model {
namespace {

constexpr size_t kBufferBytes = size_t{256} << 10;

}  // namespace

Result<std::unique_ptr<FileSink>> FileSink::create(const std::string& path) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return infra(fmt::format("{}: cannot create: {}", path, std::strerror(errno)));
  return std::unique_ptr<FileSink>(new FileSink(path, fd));
}

FileSink::~FileSink() {
  if (fd_ >= 0) ::close(fd_);
}

void FileSink::flush(std::span<const std::byte> data) {
  while (!data.empty() && error_ == 0) {
    const ssize_t written = ::write(fd_, data.data(), data.size());
    if (written < 0 && errno != EINTR) error_ = errno;
    if (written > 0) data = data.subspan(static_cast<size_t>(written));
  }
}

void FileSink::write(std::span<const std::byte> data) {
  offset_ += data.size();
  if (buffer_.size() + data.size() > kBufferBytes) {
    flush(buffer_);
    buffer_.clear();
  }
  if (data.size() > kBufferBytes) {
    flush(data);
  } else {
    buffer_.insert(buffer_.end(), data.begin(), data.end());
  }
}

Status FileSink::close() {
  flush(buffer_);
  buffer_.clear();
  if (fd_ >= 0 && ::close(fd_) != 0 && error_ == 0) error_ = errno;
  fd_ = -1;
  return error_ == 0 ? Status() : infra(fmt::format("{}: cannot write: {}", path_, std::strerror(error_)));
}

}  // namespace assay::model
