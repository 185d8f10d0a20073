#include "core/plugin/probe.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <exception>

#include "core/plugin/host.h"

namespace assay::plugin {
namespace {

using Clock = std::chrono::steady_clock;

void silence() {
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  if (null < 0) return;
  for (int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(null, fd);
}

[[noreturn]] void child(int pipe, const std::function<std::string()>& body) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::setpgid(0, 0);
  silence();
  for (int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGINT, SIGTERM}) std::signal(signal, SIG_DFL);
  std::string text = "+";
  try {
    text += body();
  } catch (const std::exception& failure) {
    text = std::string("-threw: ") + failure.what();
  } catch (...) {
    text = "-threw an unknown exception";
  }
  for (size_t done = 0; done < text.size();) {
    const ssize_t n = ::write(pipe, text.data() + done, text.size() - done);
    if (n <= 0) break;
    done += static_cast<size_t>(n);
  }
  ::_exit(0);
}

// Reads until the child closes the pipe; false at the time limit.
bool read_all(int pipe, Clock::time_point until, std::string* text) {
  std::array<char, 4096> buffer;
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
    pollfd wait = {pipe, POLLIN, 0};
    const int ready = left > 0 ? ::poll(&wait, 1, static_cast<int>(left)) : 0;
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    const ssize_t n = ::read(pipe, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return true;
    text->append(buffer.data(), static_cast<size_t>(n));
  }
}

}  // namespace

std::string signal_name(int signal) {
  const char* name = ::sigabbrev_np(signal);
  return name != nullptr ? std::string("SIG") + name : fmt::format("signal {}", signal);
}

Result<ChildReport> run_in_child(const std::function<std::string()>& body, std::chrono::milliseconds limit) {
  std::array<int, 2> ends;
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return infra(fmt::format("pipe: {}", std::strerror(errno)));
  const pid_t pid = ::fork();
  if (pid < 0) {
    const int reason = errno;
    ::close(ends[0]);
    ::close(ends[1]);
    return infra(fmt::format("fork: {}", std::strerror(reason)));
  }
  if (pid == 0) child(ends[1], body);
  ::close(ends[1]);
  std::string text;
  const bool closed = read_all(ends[0], Clock::now() + limit, &text);
  ::close(ends[0]);
  if (!closed) {
    ::kill(-pid, SIGKILL);
    ::kill(pid, SIGKILL);
  }
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  ChildReport report;
  report.hung = !closed;
  report.finished = closed && !text.empty() && text.front() == '+';
  if (!text.empty()) report.text = text.substr(1);
  if (report.finished || report.hung) return report;
  if (!text.empty()) {
    report.death = report.text;
  } else if (WIFSIGNALED(status)) {
    report.death = signal_name(WTERMSIG(status));
  } else {
    report.death = fmt::format("exit code {}", WEXITSTATUS(status));
  }
  return report;
}

std::optional<LoadError> probe(const std::filesystem::path& file, std::chrono::milliseconds limit) {
  if (std::optional<LoadError> broken = check_file(file)) return broken;
  const Result<ChildReport> report = run_in_child(
      [&] {
        Plugin plugin;
        const std::optional<LoadError> broken = load(file, silent_host(), &plugin);
        return broken ? fmt::format("{} {}", static_cast<int>(broken->failure), broken->message) : std::string();
      },
      limit);
  const std::string path = file.string();
  if (!report) return LoadError{LoadFailure::kCrashed, path + ": cannot be probed: " + report.status().message()};
  if (report->hung) {
    return LoadError{LoadFailure::kHung,
                     fmt::format("{}: did not finish loading within {} ms; fix its constructors", path, limit.count())};
  }
  if (!report->finished) {
    return LoadError{
        LoadFailure::kCrashed,
        fmt::format("{}: died with {} while it was loaded; run it under a debugger or remove it", path, report->death)};
  }
  if (report->text.empty()) return std::nullopt;
  const size_t cut = report->text.find(' ');
  return LoadError{static_cast<LoadFailure>(std::stoi(report->text.substr(0, cut))), report->text.substr(cut + 1)};
}

}  // namespace assay::plugin
