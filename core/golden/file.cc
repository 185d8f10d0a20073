#include "core/golden/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace assay {
namespace {

// What an open file is that has no end, or may have no writer; null: it can be read.
const char* other_than_file(int file) {
  struct stat info = {};
  if (::fstat(file, &info) != 0) return nullptr;
  if (S_ISDIR(info.st_mode)) return "a folder";
  if (S_ISCHR(info.st_mode) || S_ISBLK(info.st_mode)) return "a device";
  struct statfs where = {};
  const bool anonymous = ::fstatfs(file, &where) == 0 && where.f_type == PIPEFS_MAGIC;
  return S_ISFIFO(info.st_mode) && !anonymous ? "a named pipe" : nullptr;
}

}  // namespace

Result<std::string> read_file(const std::string& path, size_t most) {
  const auto failed = [&](const char* what) { return infra(fmt::format("{}: {}: {}", path, what, strerror(errno))); };
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a named pipe would wait for its writer
  if (file < 0) {
    if (errno == ENOENT || errno == ENOTDIR) return not_found(path + ": no such file");
    return failed("cannot be opened");
  }
  if (const char* other = other_than_file(file)) {
    ::close(file);
    return invalid(path + " is " + other + "; expected a file");
  }
  ::fcntl(file, F_SETFL, 0);  // reads wait
  struct stat info = {};
  ::fstat(file, &info);
  const auto too_long = [&] {
    ::close(file);
    return invalid(
        fmt::format("{} is longer than {} bytes, the most that is read as a whole: is it the right file?", path, most));
  };
  if (info.st_size > 0 && static_cast<size_t>(info.st_size) > most) return too_long();
  std::string content;
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
    if (filled > most) return too_long();
  }
  ::close(file);
  content.resize(filled);
  return content;
}

}  // namespace assay
