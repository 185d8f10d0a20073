// Directories that open and cannot be read, as on a disk or a file server that fails; for the tests of every room.
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <exception>
#include <functional>
#include <optional>
#include <string>

namespace assay::tests {

// What `act` returns in a child process where reading a directory answers EIO; "threw: WHAT" where it throws, as
// nothing of the child may go on as a second test program. nullopt where the kernel has no filters for system calls.
inline std::optional<std::string> with_unreadable_directories(const std::function<std::string()>& act) {
  constexpr int kNoFilters = 77;  // of no test program, which ends with 0 or 1
  int ends[2];
  if (::pipe(ends) != 0) return std::nullopt;
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    sock_filter steps[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                           BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getdents64, 0, 1),
                           BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EIO),
                           BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    const sock_fprog program = {sizeof(steps) / sizeof(*steps), steps};
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
      ::_exit(kNoFilters);
    std::string text;
    try {
      text = act();
    } catch (const std::exception& thrown) {
      text = std::string("threw: ") + thrown.what();
    } catch (...) {
      text = "threw: no std::exception";
    }
    ::_exit(::write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0 : 2);
  }
  ::close(ends[1]);
  std::string text;
  char piece[4096];
  for (ssize_t got = 0; (got = ::read(ends[0], piece, sizeof(piece))) > 0;)
    text.append(piece, static_cast<size_t>(got));
  ::close(ends[0]);
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child || (WIFEXITED(status) && WEXITSTATUS(status) == kNoFilters))
    return std::nullopt;
  return text + (status == 0 ? "" : " (child ended with " + std::to_string(status) + ")");
}

}  // namespace assay::tests
