#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/discover/yaml_tree.h"

namespace assay::discover {
namespace {

Status system_failure(const std::string& path, const char* doing) {
  const std::string message = path + ": " + doing + ": " + std::strerror(errno);
  if (errno == ENOENT || errno == ENOTDIR || errno == ELOOP) return not_found(message);
  return errno == EACCES || errno == EISDIR ? invalid(message) : infra(message);
}

}  // namespace

Result<std::string> read_file(const std::string& path, size_t limit) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return system_failure(path, "cannot be opened");
  struct Closer {
    int fd;
    ~Closer() { ::close(fd); }
  } closer{fd};
  struct stat info {};
  if (::fstat(fd, &info) != 0) return system_failure(path, "cannot be read");
  if (!S_ISREG(info.st_mode)) return invalid(path + ": not a regular file");
  if (static_cast<size_t>(info.st_size) > limit) {
    return invalid(path + ": " + std::to_string(info.st_size) + " bytes; at most " + std::to_string(limit) +
                   " are read here");
  }
  std::string text(static_cast<size_t>(info.st_size), '\0');
  size_t have = 0;
  while (have < text.size()) {
    const ssize_t got = ::read(fd, text.data() + have, text.size() - have);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_failure(path, "cannot be read");
    if (got == 0) break;
    have += static_cast<size_t>(got);
  }
  text.resize(have);
  return text;
}

}  // namespace assay::discover
