// One writer an output folder: FOLDER/.lock, held as long as the writer lives.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "assay/status.h"

namespace assay::run {

// Two locks in one. The kernel's (flock) ends with the process, however it ends, and on file systems that pass it on to
// the server it counts for all machines. Where it counts for one machine alone, or not at all, the file's text
// "PID HOST" and its time stamp, renewed every few seconds, tell the others that the holder lives.
class FolderLock {
 public:
  // Takes the lock of an existing folder. kInvalid: a living process has it (named with its machine); a lock whose
  // process has died is taken over, one of another machine once its time stamp is kStaleSeconds old. kInfra: the file
  // cannot be written.
  static Result<FolderLock> take(const std::filesystem::path& folder);

  FolderLock(FolderLock&&) noexcept;
  FolderLock& operator=(FolderLock&&) noexcept;
  ~FolderLock();

 private:
  struct Held;
  explicit FolderLock(std::unique_ptr<Held> held);
  std::unique_ptr<Held> held_;
};

inline constexpr int kStaleSeconds = 60;
inline constexpr int kRenewSeconds = 5;

// Who holds the lock of the folder: "process 4711 on host node7"; empty: nobody who lives.
std::string lock_holder(const std::filesystem::path& folder);

}  // namespace assay::run
