// results.jsonl of one run, and the lock of its folder.
#pragma once

#include <filesystem>
#include <memory>
#include <string_view>

#include "assay/status.h"
#include "core/run/event_file.h"
#include "core/run/folder_lock.h"

namespace assay::run {

// Whether a new run may write to `folder`, which need not exist. kInvalid names what would be lost: a run of which a
// case was planned, or, where no run has been yet, what is not a run's but has the name of something that a run writes.
Status check_new_output(const std::filesystem::path& folder);

// Removes the journal of the run in `folder`, if there is one, so that a new run may take its place: for callers whose
// folder is theirs alone. kInvalid: a process has the folder's lock, or its results.jsonl is no journal.
Status discard_run(const std::filesystem::path& folder);

// The one writer of an output folder. For one thread.
class Journal {
 public:
  // Makes the folder with cases/ and workers/, takes its lock and starts a new results.jsonl; files of
  // workers of an earlier run are removed. kInvalid: another living process holds the lock (FolderLock), a run is there
  // (check_new_output), or something in workers/ is no worker's. kInfra: not writable.
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
