#include "backends/model/checkpoint/file_reader.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace assay::model {

FileReader::~FileReader() {
  if (fd_ >= 0) ::close(fd_);
}

Status FileReader::open(const std::string& path) {
  if (fd_ >= 0) ::close(fd_);
  fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a FIFO must not block us
  path_ = path;
  struct stat info {};
  if (fd_ >= 0 && ::fstat(fd_, &info) == 0) {
    identity_ = {info.st_dev, info.st_ino};
    return {};
  }
  const int error = errno;
  std::string message = fmt::format("{}: cannot open: {}", path, std::strerror(error));
  return error == ENOENT || error == ENOTDIR ? not_found(std::move(message)) : infra(std::move(message));
}

Status FileReader::read(const std::string& path, uint64_t offset, std::span<std::byte> to) {
  if (fd_ < 0 || path != path_) {
    if (Status opened = open(path); !opened.ok()) return opened;
  }
  while (!to.empty()) {
    const ssize_t count = ::pread(fd_, to.data(), to.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return infra(fmt::format("{}: cannot read at byte {}: {}", path, offset, std::strerror(errno)));
    if (count == 0) {
      return invalid(fmt::format("{}: ends at byte {}, {} bytes too early; it was cut while it was in use", path,
                                 offset, to.size()));
    }
    offset += static_cast<uint64_t>(count);
    to = to.subspan(static_cast<size_t>(count));
  }
  return {};
}

Status FileReader::read(const MappedFile& file, uint64_t offset, std::span<std::byte> to) {
  if (Status done = read(file.path(), offset, to); !done.ok()) return done;
  if (identity_ == file.identity()) return {};
  return invalid(fmt::format("{}: another file has taken its place while it was in use; load again", file.path()));
}

}  // namespace assay::model
