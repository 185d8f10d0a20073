#include "core/command/command.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <random>
#include <thread>
#include <utility>

#include "core/command/guardian.h"
#include "core/command/held_signals.h"
#include "core/command/proc_file.h"
#include "core/command/process_table.h"

namespace assay::command {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::milliseconds;

constexpr Milliseconds kPoll{10};
constexpr Milliseconds kMemoryInterval{20};
constexpr int kWalksApart = 20;  // walks of /proc take at most one part in so many of the time
constexpr Milliseconds kSweepLimit{5000};

class Fd {
 public:
  explicit Fd(int fd = -1) : fd_(fd) {}
  Fd(const Fd&) = delete;
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Fd() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

double seconds_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

Status check(const CommandOptions& options) {
  if (options.argv.empty() || options.argv.front().empty()) return invalid("command: no program is named");
  const auto broken = [](const std::string& text) { return text.find('\0') != std::string::npos; };
  for (const std::string& word : options.argv) {
    if (broken(word)) return invalid(fmt::format("command {}: a word holds a NUL character", options.argv.front()));
  }
  for (const auto& [name, value] : options.environment) {
    if (name.empty() || name.find('=') != std::string::npos || broken(name) || broken(value)) {
      return invalid(fmt::format("command {}: '{}' is no name of a variable, or its value holds a NUL character",
                                 options.argv.front(), name));
    }
  }
  std::error_code code;
  if (!options.folder.empty() && !fs::is_directory(options.folder, code)) {
    return not_found(
        fmt::format("command {}: the working folder {} does not exist", options.argv.front(), options.folder.string()));
  }
  return {};
}

Status refusal(const GuardianReport& report, const std::string& program, const fs::path& folder) {
  const std::string why = std::strerror(report.value);
  if (report.step == GuardianReport::kFolder) {
    return infra(fmt::format("command {}: the working folder {} cannot be entered: {}", program, folder.string(), why));
  }
  if (report.step == GuardianReport::kFork) return infra(fmt::format("command {}: no process: {}", program, why));
  if (report.value == ENOENT) {
    return not_found(
        fmt::format("command {}: cannot be executed: it does not exist, or the interpreter in its first line, or its "
                    "loader does not",
                    program));
  }
  const char* remedy = report.value == EACCES    ? "; make it executable (chmod +x)"
                       : report.value == ENOEXEC ? "; it is no program and has no #! line"
                       : report.value == E2BIG   ? "; shorten its words or its environment"
                                                 : "";
  return infra(fmt::format("command {}: cannot be executed: {}{}", program, why, remedy));
}

}  // namespace

std::string new_mark() {
  static std::atomic<uint64_t> count{0};
  std::random_device random;
  const char* own = std::getenv(kMarkVariable);
  const std::string above = own != nullptr && *own != '\0' ? std::string(own) + "." : "";
  return fmt::format("{}{}-{}-{:08x}{:08x}", above, ::getpid(), count.fetch_add(1), random(), random());
}

void end_marked(const std::string& mark) {
  const auto wanted = [below = mark + "."](pid_t pid) {
    return (proc_variable(pid, kMarkVariable) + ".").starts_with(below);
  };
  const Clock::time_point give_up = Clock::now() + kSweepLimit;
  ProcessTable table;
  for (bool found = true; found && Clock::now() < give_up && table.read();) {
    found = false;
    for (size_t i = 0; i < table.size(); ++i) {
      if (table.zombie(i) || !wanted(table.pid(i))) continue;
      if (proc_name(table.pid(i)) == kGuardianName) continue;  // it ends its tree, and itself after that
      ::kill(table.pid(i), SIGKILL);
      found = true;
    }
    if (found) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

std::string exit_text(int code, int signal) {
  if (signal == 0) return fmt::format("exit code {}", code);
  const char* name = ::sigabbrev_np(signal);
  const char* words = ::sigdescr_np(signal);
  const std::string told = name != nullptr ? fmt::format("SIG{}", name) : fmt::format("signal {}", signal);
  return words != nullptr ? fmt::format("{} ({})", told, words) : told;
}

std::string CommandEnd::text() const {
  std::string line = limit == Limit::kNone ? exit_text(code, signal) : limit_text;
  if (leftovers > 0) {
    line += fmt::format("; {} process{} left behind and {} ended", leftovers, leftovers == 1 ? " was" : "es were",
                        leftovers == 1 ? "was" : "were");
  }
  if (survivors > 0) {
    line += fmt::format("; {} process{} could not be killed", survivors, survivors == 1 ? "" : "es");
  }
  return line;
}

Result<std::string> find_program(const std::string& name, const std::map<std::string, std::string>& environment,
                                 const fs::path& folder) {
  if (name.find('/') != std::string::npos) return name;
  const auto given = environment.find("PATH");
  const std::string path = given == environment.end() ? "/usr/local/bin:/usr/bin:/bin" : given->second;
  std::string found_but;
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find(':', begin), path.size());
    const std::string part = path.substr(begin, end - begin);
    fs::path candidate = fs::path(part.empty() ? "." : part) / name;
    if (candidate.is_relative() && !folder.empty()) candidate = folder / candidate;
    begin = end + 1;
    std::error_code code;
    if (!fs::is_regular_file(candidate, code)) continue;
    if (::access(candidate.c_str(), X_OK) == 0) return fs::absolute(candidate, code).string();
    if (found_but.empty()) found_but = candidate.string();
  }
  if (!found_but.empty()) return infra(fmt::format("command {}: {} is not executable", name, found_but));
  return not_found(
      fmt::format("command not found: '{}' is in no folder of PATH ({}); give its path or extend PATH", name, path));
}

class Command::Running {
 public:
  explicit Running(CommandOptions options) : options_(std::move(options)), mark_(new_mark()) {}

  ~Running() {
    if (end_ || guardian_ <= 0) return;
    send(GuardianCommand::kKill);
    wait_until(std::nullopt);
  }

  Status start() {
    if (Status fit = check(options_); !fit.ok()) return fit;
    Result<std::string> program = find_program(options_.argv.front(), options_.environment, options_.folder);
    if (!program) return program.status();
    std::vector<char*> argv;
    for (std::string& word : options_.argv) argv.push_back(word.data());
    argv.push_back(nullptr);
    std::vector<std::string> pairs = {fmt::format("{}={}", kMarkVariable, mark_)};
    for (const auto& [name, value] : options_.environment) {
      if (name != kMarkVariable) pairs.push_back(fmt::format("{}={}", name, value));
    }
    std::vector<char*> envp;
    for (std::string& pair : pairs) envp.push_back(pair.data());
    envp.push_back(nullptr);
    if (Status opened = open_files(); !opened.ok()) return opened;
    std::array<int, 2> control;
    std::array<int, 2> report;
    if (::pipe2(control.data(), O_CLOEXEC) != 0) return infra(fmt::format("pipe: {}", std::strerror(errno)));
    Fd control_end(control[0]);
    control_ = Fd(control[1]);
    if (::pipe2(report.data(), O_CLOEXEC) != 0) return infra(fmt::format("pipe: {}", std::strerror(errno)));
    report_ = Fd(report[0]);
    Fd report_end(report[1]);
    GuardianOrders orders;
    orders.program = program->c_str();
    orders.argv = argv.data();
    orders.envp = envp.data();
    orders.folder = options_.folder.empty() ? nullptr : options_.folder.c_str();
    orders.input = input_.get();
    orders.output = output_.get();
    orders.errors = errors_.get() >= 0 ? errors_.get() : output_.get();
    orders.control = control_end.get();
    orders.report = report_end.get();
    orders.grace_ms = static_cast<int>(std::max<int64_t>(options_.kill_grace.count(), 0));
    orders.table = &table_;
    begin_ = Clock::now();
    {
      const HeldSignals held;  // until the guardian holds them itself: it must not run the caller's handlers
      guardian_ = ::fork();
      if (guardian_ == 0) guard(orders);
    }
    if (guardian_ < 0) return infra(fmt::format("fork for {}: {}", options_.argv.front(), std::strerror(errno)));
    report_end = Fd();
    input_ = Fd();
    for (pollfd ready = {report_.get(), POLLIN, 0}; ::poll(&ready, 1, 100) == 0;)
      ::kill(guardian_, SIGCONT);  // as below
    const std::optional<GuardianReport> first = read_report();
    if (first && first->kind == GuardianReport::kStarted) {
      leader_ = first->value;
      return {};
    }
    while (::waitpid(guardian_, nullptr, 0) < 0 && errno == EINTR) {
    }
    guardian_ = -1;
    if (!first) return infra(fmt::format("command {}: its guardian process died", options_.argv.front()));
    return refusal(*first, *program, options_.folder);
  }

  // Until it ends, or the time is over.
  std::optional<CommandEnd> wait_until(std::optional<Clock::time_point> end) {
    for (;;) {
      Milliseconds slice = kPoll;
      const Clock::time_point now = Clock::now();
      if (end) slice = std::min(slice, std::chrono::duration_cast<Milliseconds>(*end - now));
      pollfd wait = {report_.get(), POLLIN, 0};
      if (!end_) ::poll(&wait, 1, static_cast<int>(std::max<int64_t>(slice.count(), 0)));
      if (std::optional<CommandEnd> ended = look()) return ended;
      if (end && Clock::now() >= *end) return std::nullopt;
    }
  }

  std::optional<CommandEnd> look() {
    if (end_) return end_;
    pollfd ready = {report_.get(), POLLIN, 0};
    if (::poll(&ready, 1, 0) > 0) {
      conclude(read_report());
      return end_;
    }
    enforce();
    return std::nullopt;
  }

  void limit(Limit what, std::string text, GuardianCommand how) {
    if (limit_ != Limit::kNone) return;
    limit_ = what;
    limit_text_ = std::move(text);
    send(how);
  }

  uint64_t memory() const { return memory_; }
  pid_t pid() const { return leader_; }

 private:
  Status open_files() {
    const fs::path null = "/dev/null";
    const fs::path& in = options_.input.empty() ? null : options_.input;
    input_ = Fd(::open(in.c_str(), O_RDONLY | O_CLOEXEC));
    if (input_.get() < 0) {
      const Status failure = infra(fmt::format("{}: cannot be read: {}", in.string(), std::strerror(errno)));
      return errno == ENOENT ? not_found(failure.message()) : failure;
    }
    const auto open = [this](const fs::path& file, Fd* fd) -> Status {
      const int how = O_WRONLY | O_CREAT | O_CLOEXEC | O_APPEND | (options_.append || file.empty() ? 0 : O_TRUNC);
      *fd = Fd(::open(file.empty() ? "/dev/null" : file.c_str(), how, 0644));
      if (fd->get() >= 0) return {};
      return infra(fmt::format("{}: cannot be written: {}", file.string(), std::strerror(errno)));
    };
    if (Status opened = open(options_.output, &output_); !opened.ok()) return opened;
    if (options_.errors == options_.output) return {};
    return open(options_.errors, &errors_);
  }

  void send(GuardianCommand what) const {
    const char byte = static_cast<char>(what);
    // A guardian that is gone needs no order. Whoever writes to its pipe then gets SIGPIPE: held back.
    sigset_t pipe;
    sigset_t before;
    ::sigemptyset(&pipe);
    ::sigaddset(&pipe, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &pipe, &before);
    if (::write(control_.get(), &byte, 1) < 0 && errno == EPIPE) {
      const timespec now{};
      ::sigtimedwait(&pipe, nullptr, &now);
    }
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  std::optional<GuardianReport> read_report() const {
    GuardianReport report;
    ssize_t n = 0;
    do {
      n = ::read(report_.get(), &report, sizeof(report));
    } while (n < 0 && errno == EINTR);
    if (n != sizeof(report)) return std::nullopt;
    return report;
  }

  void enforce() {
    const Clock::time_point now = Clock::now();
    if (limit_ == Limit::kNone) {
      if (options_.cancelled && options_.cancelled()) {
        limit(Limit::kCancelled, "cancelled", GuardianCommand::kTerminate);
      } else if (options_.time_limit.count() > 0 && now - begin_ >= options_.time_limit) {
        limit(Limit::kTime,
              fmt::format("time limit of {:.1f} s reached", static_cast<double>(options_.time_limit.count()) / 1000),
              GuardianCommand::kTerminate);
      }
    }
    if (limit_ != Limit::kNone) ::kill(guardian_, SIGCONT);  // the command may have stopped it
    if (now < next_walk_) return;
    check_output();
    check_memory();
    const auto took = Clock::now() - now;
    next_walk_ = now + std::max<Clock::duration>(kMemoryInterval, took * kWalksApart);
  }

  // Also while it is being ended: a program that ignores SIGTERM writes on.
  void check_output() {
    if (options_.output_limit == 0) return;
    for (const Fd* fd : {&output_, &errors_}) {
      struct stat told {};
      if (fd->get() < 0 || ::fstat(fd->get(), &told) != 0 || !S_ISREG(told.st_mode)) continue;
      if (static_cast<uint64_t>(told.st_size) <= options_.output_limit) continue;
      limit(Limit::kOutput,
            fmt::format("more than {:.1f} MB were written to {}", static_cast<double>(options_.output_limit) / 1e6,
                        fd == &output_ ? "stdout" : "stderr"),
            GuardianCommand::kKill);
      if (limit_ != Limit::kOutput) send(GuardianCommand::kKill);
    }
  }

  void check_memory() {
    if (!table_.read()) return;
    std::vector<pid_t> tree;
    for (size_t i = 0; i < table_.size(); ++i) {
      if (!table_.zombie(i) && table_.descends(table_.pid(i), guardian_)) tree.push_back(table_.pid(i));
    }
    memory_ = 0;
    for (const pid_t pid : tree) memory_ += proc_kilobytes(fmt::format("/proc/{}/status", pid), "RssAnon");
    peak_ = std::max(peak_, memory_);
    if (options_.memory_limit == 0 || memory_ <= options_.memory_limit) return;
    // Pages that processes share since a fork count once.
    uint64_t exact = 0;
    for (const pid_t pid : tree) {
      const uint64_t own = proc_kilobytes(fmt::format("/proc/{}/smaps_rollup", pid), "Pss_Anon");
      exact += own > 0 ? own : proc_kilobytes(fmt::format("/proc/{}/status", pid), "RssAnon");
    }
    if (exact <= options_.memory_limit) return;
    limit(Limit::kMemory,
          fmt::format("memory limit of {:.2f} GB reached: {:.2f} GB of anonymous memory",
                      static_cast<double>(options_.memory_limit) / 1e9, static_cast<double>(exact) / 1e9),
          GuardianCommand::kKill);
    if (limit_ != Limit::kMemory) send(GuardianCommand::kKill);
  }

  void conclude(const std::optional<GuardianReport>& report) {
    CommandEnd end;
    while (::waitpid(guardian_, nullptr, 0) < 0 && errno == EINTR) {
    }
    if (report) {
      end.code = WIFEXITED(report->value) ? WEXITSTATUS(report->value) : 0;
      end.signal = WIFSIGNALED(report->value) ? WTERMSIG(report->value) : 0;
      end.leftovers = report->leftovers;
      end.survivors = report->survivors;
    } else {
      end_marked(mark_);
      end.signal = SIGKILL;
      limit_text_ = limit_ == Limit::kNone ? "its guardian process was killed, and the command with it" : limit_text_;
      limit_ = limit_ == Limit::kNone ? Limit::kStopped : limit_;
    }
    end.limit = limit_;
    end.limit_text = limit_text_;
    end.seconds = seconds_between(begin_, Clock::now());
    end.peak_memory = peak_;
    cut(output_);
    cut(errors_);
    end_ = end;
  }

  // A file is cut at the limit: what a program wrote before it was stopped need not fill the disk.
  void cut(const Fd& fd) const {
    struct stat told {};
    if (options_.output_limit == 0 || fd.get() < 0 || ::fstat(fd.get(), &told) != 0 || !S_ISREG(told.st_mode)) return;
    if (static_cast<uint64_t>(told.st_size) <= options_.output_limit) return;
    [[maybe_unused]] const int done = ::ftruncate(fd.get(), static_cast<off_t>(options_.output_limit));
  }

  CommandOptions options_;
  const std::string mark_;
  ProcessTable table_;
  Fd input_, output_, errors_, control_, report_;
  pid_t guardian_ = -1;
  pid_t leader_ = -1;
  Clock::time_point begin_;
  Clock::time_point next_walk_;
  uint64_t memory_ = 0;
  uint64_t peak_ = 0;
  Limit limit_ = Limit::kNone;
  std::string limit_text_;
  std::optional<CommandEnd> end_;
};

Command::Command(std::unique_ptr<Running> running) : running_(std::move(running)) {}
Command::Command(Command&&) noexcept = default;
Command& Command::operator=(Command&&) noexcept = default;
Command::~Command() = default;

Result<Command> Command::start(CommandOptions options) {
  auto running = std::make_unique<Running>(std::move(options));
  if (Status started = running->start(); !started.ok()) return started;
  return Command(std::move(running));
}

pid_t Command::pid() const { return running_->pid(); }
std::optional<CommandEnd> Command::poll() { return running_->look(); }
std::optional<CommandEnd> Command::wait(std::chrono::milliseconds most) {
  return running_->wait_until(Clock::now() + most);
}
CommandEnd Command::wait() { return *running_->wait_until(std::nullopt); }
void Command::stop() { running_->limit(Limit::kStopped, "stopped", GuardianCommand::kTerminate); }
uint64_t Command::memory() const { return running_->memory(); }

Result<CommandEnd> run_command(CommandOptions options) {
  Result<Command> command = Command::start(std::move(options));
  if (!command) return command.status();
  return command->wait();
}

}  // namespace assay::command
