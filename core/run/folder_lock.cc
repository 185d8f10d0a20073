#include "core/run/folder_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstring>
#include <mutex>
#include <thread>
#include <utility>

#include "core/run/event_file.h"
#include "core/run/leash.h"

namespace assay::run {
namespace {

namespace fs = std::filesystem;

// What the file says of its holder. No pid: it was let go of.
struct Holder {
  pid_t pid = 0;
  std::string host;  // empty: not told
  std::string text() const {
    return host.empty() ? fmt::format("process {}", pid) : fmt::format("process {} on host {}", pid, host);
  }
};

Holder read_holder(int fd) {
  std::array<char, 512> buffer{};
  const ssize_t n = ::pread(fd, buffer.data(), buffer.size() - 1, 0);
  const std::string text(buffer.data(), n > 0 ? static_cast<size_t>(n) : 0);
  Holder holder;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), holder.pid);
  if (error != std::errc() || holder.pid <= 0) return {};
  holder.host = std::string(stop, text.data() + text.size());
  holder.host.erase(0, holder.host.find_first_not_of(' '));
  holder.host.erase(std::min(holder.host.size(), holder.host.find_last_not_of(" \n") + 1));
  return holder;
}

// Seconds since the time stamp of the lock, by the clock of the file system that holds it; large when not known.
double age(int fd, const fs::path& folder) {
  std::string probe = (folder / ".lock.XXXXXX").string();
  const Fd now(::mkstemp(probe.data()));
  if (!now) return 1e9;
  struct stat ours = {};
  struct stat theirs = {};
  const bool known = ::fstat(now.get(), &ours) == 0 && ::fstat(fd, &theirs) == 0;
  ::unlink(probe.c_str());
  return known ? static_cast<double>(ours.st_mtim.tv_sec - theirs.st_mtim.tv_sec) : 1e9;
}

enum class Kernel { kFree, kHeld, kAbsent };

Kernel kernel_lock(int fd, int how) {
  if (::flock(fd, how | LOCK_NB) == 0) return Kernel::kFree;
  return errno == EWOULDBLOCK ? Kernel::kHeld : Kernel::kAbsent;
}

// Whether the holder that the file names lives, where the kernel's lock does not say so.
bool lives(const Holder& holder, Kernel kernel, int fd, const fs::path& folder) {
  if (holder.pid == 0) return false;
  if (holder.host.empty() || holder.host == host_name()) {
    return kernel == Kernel::kAbsent && (::kill(holder.pid, 0) == 0 || errno == EPERM);
  }
  return age(fd, folder) < kStaleSeconds;
}

}  // namespace

struct FolderLock::Held {
  Fd file;
  std::mutex mutex;
  std::condition_variable wake;
  bool over = false;
  std::thread renewing;

  ~Held() {
    {
      const std::lock_guard guard(mutex);
      over = true;
    }
    wake.notify_one();
    if (renewing.joinable()) renewing.join();
    [[maybe_unused]] const int code = ::ftruncate(file.get(), 0);
  }
};

FolderLock::FolderLock(std::unique_ptr<Held> held) : held_(std::move(held)) {
  held_->renewing = std::thread([held = held_.get()] {
    std::unique_lock guard(held->mutex);
    while (!held->wake.wait_for(guard, std::chrono::seconds(kRenewSeconds), [held] { return held->over; })) {
      ::futimens(held->file.get(), nullptr);
    }
  });
}

FolderLock::FolderLock(FolderLock&&) noexcept = default;
FolderLock& FolderLock::operator=(FolderLock&&) noexcept = default;

FolderLock::~FolderLock() = default;

Result<FolderLock> FolderLock::take(const fs::path& folder) {
  const fs::path file = folder / ".lock";
  const auto unwritable = [&] {
    return infra(
        fmt::format("{}: cannot be written: {}; choose another --output", file.string(), std::strerror(errno)));
  };
  const auto in_use = [&](const Holder& holder) {
    return invalid(fmt::format("{}: in use by {}; wait for it or choose another --output", folder.string(),
                               holder.pid == 0 ? "another process" : holder.text()));
  };
  Fd lock(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!lock) return unwritable();
  const Kernel kernel = kernel_lock(lock.get(), LOCK_EX);
  const Holder holder = read_holder(lock.get());
  if (kernel == Kernel::kHeld) return in_use(holder);
  if (lives(holder, kernel, lock.get(), folder)) {
    return invalid(
        fmt::format("{}: in use by {}, whose last sign of life is less than {} s old; wait for it, choose "
                    "another --output or, if it is dead, try again in a minute",
                    folder.string(), holder.text(), kStaleSeconds));
  }
  const std::string own = fmt::format("{} {}\n", ::getpid(), host_name());
  if (::ftruncate(lock.get(), 0) != 0 || ::pwrite(lock.get(), own.data(), own.size(), 0) < 0) return unwritable();
  auto held = std::make_unique<Held>();
  held->file = std::move(lock);
  return FolderLock(std::move(held));
}

std::string lock_holder(const fs::path& folder) {
  const Fd lock(::open((folder / ".lock").c_str(), O_RDONLY | O_CLOEXEC));
  if (!lock) return "";
  const Kernel kernel = kernel_lock(lock.get(), LOCK_SH);
  const Holder holder = read_holder(lock.get());
  if (kernel == Kernel::kHeld) return holder.pid == 0 ? "another process" : holder.text();
  return lives(holder, kernel, lock.get(), folder) ? holder.text() : "";
}

}  // namespace assay::run
