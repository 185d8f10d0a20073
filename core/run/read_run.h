// A run read back from its output folder: finished, cancelled or killed.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "assay/status.h"
#include "core/run/run.h"

namespace assay::run {

// A row of the run: a case, or one relation of it.
struct RowRecord {
  std::string digest = {};  // case_digest() when it was planned; empty: not told
  bool started = false;
  bool finished = false;                  // it has a verdict of its own
  std::string missing = {};               // of a merged run: why no run has it; empty: one has
  std::vector<std::string> repeats = {};  // repeat_finished lines of a case that is run more than once, in order
};

struct RunRecord {
  RunInfo info;                          // output: the folder that was read
  std::vector<std::string> command;      // words
  double started = 0;                    // seconds since 1970, UTC
  std::string environment;               // which golden files judged
  std::string platform;                  // as asked for; empty: the backend's
  bool strict = false;                   // EQUIVALENT does not pass
  bool finished = false;                 // the journal has a run_finished line
  bool running = false;                  // it has none yet, and its writer lives
  size_t unfinished = 0;                 // cases that started and have no verdict of their own
  size_t never_started = 0;              // planned cases that have neither
  size_t unplanned = 0;                  // rows that are counted and were never written down
  RunSummary summary;                    // cases in the order in which they were planned
  std::vector<RowRecord> rows;           // parallel to summary.outcomes; empty while the run is still going on
  std::string version;                   // of assay
  std::string directory;                 // current folder of the command
  std::string options;                   // JSON object: what was asked for, see run_header.h
  std::string merged;                    // JSON array: the runs that it was made of; empty: it was run as it is
  std::vector<std::string> run_command;  // of a merged run: the command of its runs without what differs
  uint64_t sessions = 1;                 // the run was resumed one time fewer
};

// Which members of results.jsonl are wanted.
enum class Detail {
  kFull,
  kVerdicts,  // no evidence and no findings: a history of many runs
};

// That FOLDER/results.jsonl is there. One line: kNotFound, kInvalid (no folder), kInfra (may not be looked at).
Status check_run_folder(const std::filesystem::path& folder);

// Reads FOLDER/results.jsonl. A torn last line and events that this version does not know are passed over.
// Where the run was resumed (run_resumed), a case that was run again has its last verdict, and the run's seconds are
// those of all sessions. Without run_finished the run counts as killed: a case that started and has no verdict is
// CRASHED, a planned one that never started is INFRA, both with a reason that says so, and the run's seconds are those
// to the last event. While a run is still going on, it has the cases that are finished and counts the others. Paths of
// actual.json and engine.log are those below `folder`, which may have been moved; "" where nothing is there. Fails with
// one line: kNotFound (no such folder or journal), kInvalid (names file and line: not an event, another schema, no
// run_started, an unreadable verdict), kInfra (unreadable). Pure but for reading; safe from any thread. `holds_lock`:
// the caller holds the lock of the folder, so that the run is not going on.
Result<RunRecord> read_run(const std::filesystem::path& folder, Detail detail = Detail::kFull, bool holds_lock = false);

// The same for a journal of any name; the folder that it lies in counts as that of the run.
Result<RunRecord> read_journal(const std::filesystem::path& file, Detail detail = Detail::kFull,
                               bool holds_lock = false);

// What there is to say of a run with `unplanned` rows: one line.
std::string cut_off_text(const RunRecord& record);

}  // namespace assay::run
