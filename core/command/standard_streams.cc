#include "core/command/standard_streams.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace assay::command {

void occupy_standard_streams() {
  for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; ++stream) {
    if (::fcntl(stream, F_GETFD) >= 0 || errno != EBADF) continue;
    const int opened = ::open("/dev/null", O_RDONLY);  // the lowest that is free: `stream`, as those below are taken
    if (opened > STDERR_FILENO) ::close(opened);
    if (opened < 0) return;
  }
}

}  // namespace assay::command
