// results.jsonl of one run, and the lock of its folder.
#pragma once

#include <filesystem>
#include <memory>
#include <string_view>

#include "assay/status.h"
#include "core/run/event_file.h"
#include "core/run/folder_lock.h"

namespace assay::run {

// The one writer of an output folder. For one thread.
class Journal {
 public:
  // Makes the folder with cases/ and workers/, takes its lock and starts a new results.jsonl; what an earlier run left
  // in workers/ is removed. kInvalid: another living process holds the lock (FolderLock). kInfra: not writable.
  static Result<Journal> open(const std::filesystem::path& folder);

  // Goes on with the results.jsonl of a folder whose lock the caller has taken; a torn last line is cut off. kInfra:
  // not writable.
  static Result<Journal> reopen(const std::filesystem::path& folder, FolderLock lock);

  // `line` ends with a newline. Written with one write(2), so that a crash of this process loses nothing.
  Status append(std::string_view line) { return writer_.append(line); }
  Status sync_soon() { return writer_.sync_soon(); }
  Status sync() { return writer_.sync(); }

 private:
  Journal(FolderLock lock, EventWriter writer) : lock_(std::move(lock)), writer_(std::move(writer)) {}

  FolderLock lock_;
  EventWriter writer_;
};

}  // namespace assay::run
