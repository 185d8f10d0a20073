#include "core/golden/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace assay {

Result<std::string> read_file(const std::string& path) {
  const auto failed = [&](const char* what) { return infra(fmt::format("{}: {}: {}", path, what, strerror(errno))); };
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    if (errno == ENOENT || errno == ENOTDIR) return not_found(path + ": no such file");
    return failed("cannot be opened");
  }
  struct stat info = {};
  std::string content;
  if (::fstat(file, &info) == 0 && S_ISDIR(info.st_mode)) {
    ::close(file);
    return invalid(path + " is a folder; expected a file");
  }
  if (S_ISCHR(info.st_mode) || S_ISBLK(info.st_mode)) {  // some never end
    ::close(file);
    return invalid(path + " is a device; expected a file");
  }
  content.resize(static_cast<size_t>(std::max<off_t>(info.st_size, 0)) + 1);
  size_t filled = 0;
  for (;;) {
    if (filled == content.size()) content.resize(2 * content.size());
    const ssize_t got = ::read(file, content.data() + filled, content.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      Status status = failed("cannot be read");
      ::close(file);
      return status;
    }
    if (got == 0) break;
    filled += static_cast<size_t>(got);
  }
  ::close(file);
  content.resize(filled);
  return content;
}

}  // namespace assay
