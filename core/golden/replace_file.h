// Changing files that others read or change at the same time.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "assay/status.h"

namespace assay {

// Whether a file must survive the loss of power, which costs a disk flush, or the death of processes alone.
enum class Durability { kProcess, kPower };

// Puts `content` in the place of `path` through a temporary file beside it: whoever reads, and whatever dies, there is
// the old file or the whole new one. The old file's permissions are kept. A symbolic link stays one: the file it leads
// to is replaced. What is no file (a device, a pipe, /dev/stdout) is written to. Fails with kInfra; an old file is then
// untouched.
Status replace_file(const std::string& path, std::string_view content, Durability durability);

// Held while files of one folder are changed by this program; released by the destructor and by the process's death.
// Leaves no file behind. Move-only.
class FolderLock {
 public:
  // Waits up to two seconds for another holder. Fails with kNotFound (no such folder) or kInfra (still held, cannot be
  // locked).
  static Result<FolderLock> take(const std::string& folder);

  FolderLock(FolderLock&& other) noexcept : file_(other.file_) { other.file_ = -1; }
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;
  FolderLock& operator=(FolderLock&&) = delete;
  ~FolderLock();

 private:
  explicit FolderLock(int file) : file_(file) {}

  int file_;
};

// replace_file (kPower), if `path` still is what it was when it was read: `digest` is its digest_of_file, or empty
// where there was no file. Call it with the folder's lock held. Fails with kInvalid when the file changed, appeared or
// vanished meanwhile; nothing is written then.
Status replace_unchanged(const std::string& path, const std::string& digest, std::string_view content);

// digest_of_file, or "" where there is no such file.
Result<std::string> digest_if_present(const std::string& path);

}  // namespace assay
