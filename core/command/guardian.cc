#include "core/command/guardian.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <initializer_list>

#include "core/command/held_signals.h"

namespace assay::command {
namespace {

constexpr int64_t kSettleMs = 250;    // for processes that end just after the program
constexpr int64_t kGiveUpMs = 10000;  // of killing what cannot be killed
constexpr int kFirstHigh = 10;        // file descriptors are moved out of the way to here

int64_t now_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void close_from(unsigned first) {
  if (::syscall(SYS_close_range, first, ~0U, 0) == 0) return;
  for (int fd = static_cast<int>(first); fd < 65536; ++fd) ::close(fd);
}

class Guardian {
 public:
  explicit Guardian(GuardianOrders orders) : orders_(orders) {}

  [[noreturn]] void run() {
    ::setsid();
    ::prctl(PR_SET_NAME, kGuardianName);
    sigset_t all;
    ::sigfillset(&all);
    ::sigprocmask(SIG_SETMASK, &all, nullptr);
    ::signal(SIGCHLD, SIG_DFL);  // a caller that ignores it would have the kernel reap
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    arrange_files();
    sigset_t child;
    ::sigemptyset(&child);
    ::sigaddset(&child, SIGCHLD);
    signals_ = ::signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    start();
    follow();
    report({.kind = GuardianReport::kEnded, .value = status_, .leftovers = leftovers_, .survivors = survivors_});
    ::_exit(0);
  }

 private:
  // Keeps what the orders name and closes the rest: the caller's other pipes must not stay open here.
  void arrange_files() {
    int* const wanted[] = {&orders_.input, &orders_.output, &orders_.errors, &orders_.control, &orders_.report};
    for (int* fd : wanted) *fd = ::fcntl(*fd, F_DUPFD_CLOEXEC, kFirstHigh);
    int place = 3;
    for (int* fd : wanted) {
      ::dup3(*fd, place, O_CLOEXEC);
      *fd = place++;
    }
    close_from(static_cast<unsigned>(place));
    const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int standard = 0; standard < 3; ++standard) ::dup2(null, standard);
  }

  void start() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) refuse(GuardianReport::kFork, errno);
    const pid_t guardian = ::getpid();
    leader_ = ::fork();
    if (leader_ < 0) refuse(GuardianReport::kFork, errno);
    if (leader_ == 0) become_program(guardian, ends[1]);
    ::close(ends[1]);
    for (const int fd : {orders_.input, orders_.output, orders_.errors}) ::close(fd);
    GuardianReport failure;
    ssize_t n = 0;
    do {
      n = ::read(ends[0], &failure, sizeof(failure));
    } while (n < 0 && errno == EINTR);
    ::close(ends[0]);
    if (n == sizeof(failure)) {
      report(failure);
      ::_exit(0);
    }
    report({.kind = GuardianReport::kStarted, .value = leader_});
  }

  [[noreturn]] void become_program(pid_t guardian, int failures) const {
    ::setsid();
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != guardian) ::_exit(127);
    ::dup2(orders_.input, STDIN_FILENO);
    ::dup2(orders_.output, STDOUT_FILENO);
    ::dup2(orders_.errors, STDERR_FILENO);
    const auto fail = [failures](GuardianReport::Step step) {
      const GuardianReport failure = {.kind = GuardianReport::kRefused, .value = errno, .step = step};
      [[maybe_unused]] const ssize_t n = ::write(failures, &failure, sizeof(failure));
      ::_exit(127);
    };
    if (orders_.folder != nullptr && ::chdir(orders_.folder) != 0) fail(GuardianReport::kFolder);
    release_signals();
    ::execve(orders_.program, orders_.argv, orders_.envp);
    fail(GuardianReport::kExecute);
    ::_exit(127);
  }

  [[noreturn]] void refuse(GuardianReport::Step step, int reason) const {
    report({.kind = GuardianReport::kRefused, .value = reason, .step = step});
    ::_exit(0);
  }

  void report(GuardianReport what) const {
    // The caller may be gone; SIGPIPE is blocked.
    [[maybe_unused]] const ssize_t n = ::write(orders_.report, &what, sizeof(what));
  }

  void follow() {
    for (;;) {
      if (!reap() || leader_ended_) break;
      const GuardianOrder order = wait_ms(-1);
      if (order != GuardianOrder::kNone) return end_tree(order == GuardianOrder::kTerminate ? orders_.grace_ms : 0);
    }
    // What ends together with the program is no leftover.
    const int64_t settled = now_ms() + kSettleMs;
    GuardianOrder order = GuardianOrder::kNone;
    while (order == GuardianOrder::kNone && reap() && now_ms() < settled) order = wait_ms(10);
    leftovers_ = signal_all(0);
    end_tree(leftovers_ > 0 && order != GuardianOrder::kKill ? orders_.grace_ms : 0);
  }

  enum class GuardianOrder { kNone, kTerminate, kKill };

  // Until a child ends, an order comes or the time is over. The caller's end is an order to kill.
  GuardianOrder wait_ms(int milliseconds) {
    pollfd waits[2] = {{signals_, POLLIN, 0}, {orders_.control, POLLIN, 0}};
    if (::poll(waits, gone_ ? 1 : 2, milliseconds) <= 0) return GuardianOrder::kNone;
    signalfd_siginfo drained[8];
    while (::read(signals_, drained, sizeof(drained)) > 0) {
    }
    if (gone_ || waits[1].revents == 0) return GuardianOrder::kNone;
    char byte = 0;
    const ssize_t n = ::read(orders_.control, &byte, 1);
    if (n == 1)
      return byte == static_cast<char>(GuardianCommand::kTerminate) ? GuardianOrder::kTerminate : GuardianOrder::kKill;
    if (n < 0 && errno == EINTR) return GuardianOrder::kNone;
    gone_ = true;
    return GuardianOrder::kKill;
  }

  // False when no descendant is left: those that lose their parents become children of this process.
  bool reap() {
    for (;;) {
      int status = 0;
      const pid_t pid = ::waitpid(-1, &status, WNOHANG | __WALL);
      if (pid == 0) return true;
      if (pid < 0 && errno == EINTR) continue;
      if (pid < 0) return false;
      if (pid == leader_) {
        leader_ended_ = true;
        status_ = status;
      }
    }
  }

  // Sends a signal to every living descendant (0: none) and counts them.
  int signal_all(int signal) {
    const pid_t self = ::getpid();
    ProcessTable& table = *orders_.table;
    if (!table.read()) {  // no /proc: the program's group is what is known
      if (signal != 0) ::kill(-leader_, signal);
      return leader_ended_ ? 0 : 1;
    }
    int count = 0;
    for (size_t i = 0; i < table.size(); ++i) {
      if (table.zombie(i) || !table.descends(table.pid(i), self)) continue;
      ++count;
      if (signal != 0) ::kill(table.pid(i), signal);
    }
    return count;
  }

  void end_tree(int grace_ms) {
    if (grace_ms > 0 && reap()) {
      signal_all(SIGTERM);
      signal_all(SIGCONT);  // a stopped process sees SIGTERM only then
      const int64_t end = now_ms() + grace_ms;
      while (reap() && now_ms() < end) {
        if (wait_ms(5) == GuardianOrder::kKill) break;
      }
    }
    const int64_t give_up = now_ms() + kGiveUpMs;
    while (reap()) {
      survivors_ = signal_all(SIGKILL);
      if (now_ms() >= give_up) return;
      wait_ms(2);
    }
    survivors_ = 0;
  }

  GuardianOrders orders_;
  int signals_ = -1;
  pid_t leader_ = -1;
  bool leader_ended_ = false;
  bool gone_ = false;  // the caller is
  int status_ = 0;     // of the leader
  int leftovers_ = 0;
  int survivors_ = 0;
};

}  // namespace

void guard(GuardianOrders orders) { Guardian(orders).run(); }

}  // namespace assay::command
