// A run read back from its output folder: finished, cancelled or killed.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "assay/status.h"
#include "core/run/run.h"

namespace assay::run {

struct RunRecord {
  RunInfo info;                      // output: the folder that was read
  std::vector<std::string> command;  // words
  double started = 0;                // seconds since 1970, UTC
  std::string environment;           // which golden files judged
  std::string platform;              // as asked for; empty: the backend's
  bool strict = false;               // EQUIVALENT does not pass
  bool finished = false;             // the journal has a run_finished line
  bool running = false;              // it has none yet, and its writer lives
  size_t unfinished = 0;             // cases that started and have no verdict of their own
  size_t never_started = 0;          // planned cases that have neither
  RunSummary summary;                // cases in the order in which they were planned
};

// Which members of results.jsonl are wanted.
enum class Detail {
  kFull,
  kVerdicts,  // no evidence and no findings: a history of many runs
};

// Reads FOLDER/results.jsonl. A torn last line and events that this version does not know are passed over. Without
// run_finished the run counts as killed: a case that started and has no verdict is CRASHED, a planned one that never
// started is INFRA, both with a reason that says so, and the run's seconds are those to the last event. While a run is
// still going on, it has the cases that are finished and counts the others.
// Paths of actual.json and engine.log that no longer exist are looked for below `folder`, which may have been moved.
// Fails with one line: kNotFound (no such folder or journal), kInvalid (names file and line: not an event, another
// schema, no run_started, an unreadable verdict), kInfra (unreadable). Pure but for reading; safe from any thread.
Result<RunRecord> read_run(const std::filesystem::path& folder, Detail detail = Detail::kFull);

}  // namespace assay::run
