// Sends stdout and stderr of this process to a file for a while.
#pragma once

#include <filesystem>

#include "core/run/event_file.h"

namespace assay::run {

// While it lives, file descriptors 1 and 2 append to `file` (made or emptied). For one thread at a time.
class Redirect {
 public:
  // When the file cannot be made the output stays where it was: valid() tells.
  explicit Redirect(const std::filesystem::path& file);
  ~Redirect();
  Redirect(const Redirect&) = delete;
  Redirect& operator=(const Redirect&) = delete;

  bool valid() const { return static_cast<bool>(saved_out_); }

 private:
  Fd saved_out_;
  Fd saved_err_;
};

}  // namespace assay::run
