#include "tools/bench/temporary_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <thread>
#include <utility>

namespace assay::bench {
namespace {

namespace fs = std::filesystem;

constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP};

std::atomic<int> signal_pipe = -1;  // its end for writing; -1: nobody waits

void tell(int signal) {
  const int error = errno;
  const auto byte = static_cast<unsigned char>(signal);
  [[maybe_unused]] const ssize_t written = ::write(signal_pipe, &byte, 1);
  errno = error;
}

// Other threads may be writing into the folder: one that gets a file while it is emptied cannot be removed. So it gets
// another name first, by which nobody writes; what they still make under the old one is removed, too.
void discard(const fs::path& folder) {
  const fs::path aside = folder.string() + "-ended";
  std::error_code error;
  const auto is_there = [&](const fs::path& path) { return fs::exists(fs::symlink_status(path, error)); };
  for (int i = 0; i < 100 && (is_there(folder) || is_there(aside)); ++i) {
    fs::rename(folder, aside, error);
    if (error) fs::remove_all(folder, error);
    fs::remove_all(aside, error);
  }
}

}  // namespace

// A handler may do next to nothing, so it tells a thread, which removes the folder and lets the signal do its work.
class TemporaryFolder::SignalWatch {
 public:
  explicit SignalWatch(fs::path folder) : folder_(std::move(folder)) {
    if (::pipe2(ends_.data(), O_CLOEXEC) != 0) return;
    signal_pipe = ends_[1];
    thread_ = std::thread([this] { wait(); });
    struct sigaction action = {};
    action.sa_handler = tell;
    action.sa_flags = SA_RESTART;
    for (size_t i = 0; i < kSignals.size(); ++i) {
      ::sigaction(kSignals[i], nullptr, &before_[i]);
      if (before_[i].sa_handler == SIG_DFL) ::sigaction(kSignals[i], &action, nullptr);
    }
  }

  ~SignalWatch() {
    if (!thread_.joinable()) return;
    for (size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &before_[i], nullptr);
    tell(0);
    thread_.join();
    signal_pipe = -1;
    for (const int end : ends_) ::close(end);
  }

  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

 private:
  void wait() const {
    unsigned char signal = 0;
    while (::read(ends_[0], &signal, 1) < 0 && errno == EINTR) {
    }
    if (signal == 0) return;
    discard(folder_);
    ::signal(signal, SIG_DFL);
    ::kill(::getpid(), signal);
  }

  fs::path folder_;
  std::array<int, 2> ends_ = {-1, -1};
  std::array<struct sigaction, kSignals.size()> before_ = {};
  std::thread thread_;
};

TemporaryFolder::TemporaryFolder(fs::path path)
    : path_(std::move(path)), watch_(std::make_unique<SignalWatch>(path_)) {}

TemporaryFolder::TemporaryFolder(TemporaryFolder&&) noexcept = default;

TemporaryFolder& TemporaryFolder::operator=(TemporaryFolder&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(watch_, other.watch_);
  return *this;
}

TemporaryFolder::~TemporaryFolder() {
  if (watch_ != nullptr) discard(path_);
}

Result<TemporaryFolder> TemporaryFolder::make() {
  std::error_code error;
  const fs::path parent = fs::temp_directory_path(error);
  if (error) return infra("no folder for temporary files: TMPDIR names none (" + error.message() + ")");
  std::string name = (parent / "assay-bench-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) {
    return infra(fmt::format("{}: cannot make a temporary folder: {}", parent.string(), std::strerror(errno)));
  }
  return TemporaryFolder(name);
}

}  // namespace assay::bench
