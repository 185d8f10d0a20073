#include "core/command/standard_streams.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vector>

namespace assay::command {
namespace {

// In a process of its own: the descriptor that a file gets which is opened after `closed` were closed, or 100 where
// what was closed can be written to.
int next_descriptor(const std::vector<int>& closed) {
  const pid_t child = ::fork();
  if (child == 0) {
    for (const int stream : closed) ::close(stream);
    occupy_standard_streams();
    const int opened = ::open("/dev/null", O_RDONLY);
    for (const int stream : closed) {
      if (::write(stream, "x", 1) >= 0) ::_exit(100);
    }
    ::_exit(opened < 0 ? 101 : opened);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(StandardStreams, NoLaterFileBecomesOneThatWasClosed) {
  for (const std::vector<int>& closed :
       std::vector<std::vector<int>>{{}, {0}, {1}, {2}, {0, 1}, {1, 2}, {0, 2}, {0, 1, 2}}) {
    EXPECT_GT(next_descriptor(closed), 2) << closed.size() << " closed";
    EXPECT_LT(next_descriptor(closed), 100) << closed.size() << " closed";
  }
}

}  // namespace
}  // namespace assay::command
