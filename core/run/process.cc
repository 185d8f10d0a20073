#include "core/run/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fstream>
#include <thread>
#include <utility>

#include "core/command/command.h"
#include "core/command/held_signals.h"
#include "core/run/event_file.h"

namespace assay::run {
namespace {

// Everything the child needs between fork and exec, made beforehand: no allocation happens there.
struct Prepared {
  std::vector<char*> argv;
  std::vector<std::string> pairs;
  std::vector<char*> envp;
  int null = -1;
  int log = -1;
  int report = -1;  // errno of a failed exec is written here; closed by a successful one
  pid_t parent = -1;
};

[[noreturn]] void child(const Prepared& prepared) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != prepared.parent) ::_exit(127);
  ::dup2(prepared.null, STDIN_FILENO);
  ::dup2(prepared.log, STDOUT_FILENO);
  ::dup2(prepared.log, STDERR_FILENO);
  command::release_signals();
  ::execve(prepared.argv[0], prepared.argv.data(), prepared.envp.data());
  const int reason = errno;
  [[maybe_unused]] const ssize_t n = ::write(prepared.report, &reason, sizeof(reason));
  ::_exit(127);
}

}  // namespace

std::string Exit::text() const { return command::exit_text(code, signal); }

Result<Process> Process::spawn(const SpawnOptions& options) {
  std::vector<std::string> argv = options.argv;
  Prepared prepared;
  for (std::string& word : argv) prepared.argv.push_back(word.data());
  prepared.argv.push_back(nullptr);
  const std::string mark = command::new_mark();
  prepared.pairs.push_back(fmt::format("{}={}", command::kMarkVariable, mark));
  for (const auto& [name, value] : options.environment) {
    if (name != command::kMarkVariable) prepared.pairs.push_back(fmt::format("{}={}", name, value));
  }
  for (std::string& pair : prepared.pairs) prepared.envp.push_back(pair.data());
  prepared.envp.push_back(nullptr);
  const Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  const Fd log(::open(options.log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!null || !log) {
    return infra(fmt::format("{}: cannot be opened: {}", options.log.string(), std::strerror(errno)));
  }
  std::array<int, 2> ends;
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return infra(fmt::format("pipe: {}", std::strerror(errno)));
  Fd report(ends[0]);
  Fd child_end(ends[1]);
  prepared.null = null.get();
  prepared.log = log.get();
  prepared.report = child_end.get();
  prepared.parent = ::getpid();
  pid_t pid = -1;
  {
    const command::HeldSignals held;
    pid = ::fork();
    if (pid == 0) child(prepared);
  }
  if (pid < 0) return infra(fmt::format("fork for {}: {}", argv[0], std::strerror(errno)));
  ::setpgid(pid, pid);  // both sides do it, so that either order works
  child_end = Fd();
  Process process(pid, mark);
  int reason = 0;
  ssize_t n = 0;
  do {
    n = ::read(report.get(), &reason, sizeof(reason));
  } while (n < 0 && errno == EINTR);
  if (n != sizeof(reason)) return process;
  return infra(fmt::format("{}: cannot be executed: {}; check the installation", argv[0], std::strerror(reason)));
}

Process::Process(Process&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), mark_(std::move(other.mark_)), exit_(other.exit_) {}

Process& Process::operator=(Process&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(mark_, other.mark_);
  std::swap(exit_, other.exit_);
  return *this;
}

Process::~Process() {
  if (pid_ < 0 || exit_) return;
  signal_group(SIGKILL);
  ::kill(pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  command::end_marked(mark_);
}

std::optional<Exit> Process::poll() {
  if (exit_ || pid_ < 0) return exit_;
  // The group is killed while its dead leader still holds the number, so that nobody else can own it.
  siginfo_t info{};
  if (::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid != pid_) {
    return std::nullopt;
  }
  signal_group(SIGKILL);
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  command::end_marked(mark_);
  exit_ = WIFSIGNALED(status) ? Exit{0, WTERMSIG(status)} : Exit{WEXITSTATUS(status), 0};
  return exit_;
}

void Process::signal_group(int signal) const {
  if (pid_ > 0) ::kill(-pid_, signal);
}

uint64_t Process::anonymous_bytes() const { return proc_kilobytes(fmt::format("/proc/{}/status", pid_), "RssAnon"); }

void wait_any(const std::vector<pid_t>& pids, int milliseconds) {
  std::vector<Fd> owners;
  std::vector<pollfd> waits;
  for (const pid_t pid : pids) {
    Fd fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    if (!fd) continue;
    waits.push_back({fd.get(), POLLIN, 0});
    owners.push_back(std::move(fd));
  }
  if (waits.empty()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
  } else {
    ::poll(waits.data(), waits.size(), milliseconds);
  }
}

uint64_t machine_memory() {
  const uint64_t total = proc_kilobytes("/proc/meminfo", "MemTotal");
  uint64_t limit = 0;
  std::ifstream("/sys/fs/cgroup/memory.max") >> limit;  // "max" where there is none: stays 0
  return limit > 0 ? std::min(total, limit) : total;
}

}  // namespace assay::run
