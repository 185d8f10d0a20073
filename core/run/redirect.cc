#include "core/run/redirect.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>

namespace assay::run {

Redirect::Redirect(const std::filesystem::path& file) {
  std::fflush(nullptr);
  const Fd log(::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644));
  if (!log) return;
  saved_out_ = Fd(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3));
  saved_err_ = Fd(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3));
  ::dup2(log.get(), STDOUT_FILENO);
  ::dup2(log.get(), STDERR_FILENO);
}

Redirect::~Redirect() {
  if (!valid()) return;
  std::fflush(nullptr);
  ::dup2(saved_out_.get(), STDOUT_FILENO);
  ::dup2(saved_err_.get(), STDERR_FILENO);
}

}  // namespace assay::run
