#include "core/golden/replace_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>

#include "core/golden/digest.h"

namespace assay {
namespace {

constexpr std::chrono::milliseconds kLongestWait{2000};
constexpr std::chrono::milliseconds kPause{20};

Status write_all(int file, std::string_view content) {
  while (!content.empty()) {
    const ssize_t written = ::write(file, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return infra(strerror(errno));
    content.remove_prefix(static_cast<size_t>(written));
  }
  return {};
}

// The mode of the file that is replaced, so that a golden keeps the permissions that its owner gave it.
mode_t mode_of(const std::string& path) {
  struct stat info = {};
  constexpr mode_t kNew = 0644;
  return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) ? info.st_mode & 07777 : kNew;
}

// Where `path` leads: a symbolic link stays one.
std::string target_of(const std::string& path) {
  std::error_code unknown;
  if (!std::filesystem::is_symlink(path, unknown)) return path;
  const std::string target = std::filesystem::weakly_canonical(path, unknown).string();
  return target.empty() ? path : target;
}

// Devices, pipes and sockets take what is written; putting a file in their place would break them for everybody.
bool takes_writes(const std::string& path) {
  struct stat info = {};
  if (::stat(path.c_str(), &info) != 0 || S_ISDIR(info.st_mode)) return false;
  return !S_ISREG(info.st_mode) || path.starts_with("/dev/") || path.starts_with("/proc/");
}

Status write_into(const std::string& path, std::string_view content) {
  const int file = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY);
  Status status = file < 0 ? infra(strerror(errno)) : write_all(file, content);
  if (file >= 0 && ::close(file) != 0 && status.ok()) status = infra(strerror(errno));
  return status.with(path + ": cannot be written");
}

}  // namespace

Status replace_file(const std::string& asked, std::string_view content, Durability durability) {
  if (takes_writes(asked)) return write_into(asked, content);
  const std::string path = target_of(asked);
  std::string temporary = path + ".XXXXXX";
  const int file = ::mkostemp(temporary.data(), O_CLOEXEC);
  if (file < 0) return infra(fmt::format("{}: cannot be written: {}", path, strerror(errno)));
  Status status = write_all(file, content);
  if (status.ok() && ::fchmod(file, mode_of(path)) != 0) status = infra(strerror(errno));
  const bool flush = status.ok() && durability == Durability::kPower;
  if (flush && ::fsync(file) != 0 && errno != EINVAL) status = infra(strerror(errno));
  if (::close(file) != 0 && status.ok()) status = infra(strerror(errno));
  if (status.ok() && ::rename(temporary.c_str(), path.c_str()) != 0) status = infra(strerror(errno));
  if (status.ok()) return {};
  ::unlink(temporary.c_str());
  return status.with(path + ": cannot be written");
}

Result<FolderLock> FolderLock::take(const std::string& folder) {
  const int file = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0) {
    const std::string message = fmt::format("{}: cannot be opened: {}", folder, strerror(errno));
    return errno == ENOENT || errno == ENOTDIR ? not_found(message) : infra(message);
  }
  FolderLock lock(file);
  const auto deadline = std::chrono::steady_clock::now() + kLongestWait;
  while (::flock(file, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK) return infra(fmt::format("{}: cannot be locked: {}", folder, strerror(errno)));
    if (std::chrono::steady_clock::now() >= deadline) {
      return infra(folder + ": another assay is changing golden files here; try again when it is done");
    }
    std::this_thread::sleep_for(kPause);
  }
  return lock;
}

FolderLock::~FolderLock() {
  if (file_ >= 0) ::close(file_);
}

Result<std::string> digest_if_present(const std::string& path) {
  Result<std::string> digest = digest_of_file(path);
  if (!digest && digest.status().code() == StatusCode::kNotFound) return std::string();
  return digest;
}

Status replace_unchanged(const std::string& path, const std::string& digest, std::string_view content) {
  const auto now = digest_if_present(path);
  if (!now) return now.status();
  if (*now != digest) {
    return invalid(fmt::format("{}: {} since it was read; nothing was written: look at it again", path,
                               now->empty()     ? "vanished"
                               : digest.empty() ? "appeared"
                                                : "changed"));
  }
  return replace_file(path, content, Durability::kPower);
}

}  // namespace assay
