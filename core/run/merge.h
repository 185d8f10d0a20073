// One run out of several: the shards of one, or any runs that ask the same of different cases.
//
//   OUTPUT/results.jsonl   run_started with "merged", every case planned, those with a verdict finished, run_finished
//   OUTPUT/cases/<case>    a link to the folder of the run that it comes from, or a copy
//   OUTPUT/durations.json  for --durations (durations.h)
// A case that a run planned and did not finish has the lines that it has there, so that it reads as it does there. A
// case of a shard that is missing is planned with "missing", the reason of its INFRA.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "assay/status.h"
#include "core/run/read_run.h"

namespace assay::run {

struct MergeOptions {
  std::vector<std::filesystem::path> runs;  // output folders, at least one
  std::filesystem::path output;
  bool allow_duplicates = false;  // of a case in several runs the worst verdict stays, and any before INFRA or none
  bool allow_different = false;   // versions, options, environments and platforms may differ
  bool copy = false;              // case folders are copied, not linked to
  std::string assay_version;
  std::vector<std::string> command;
};

struct Merged {
  RunRecord record;                // of the new run
  std::vector<std::string> notes;  // for people: what is missing, what was there twice
};

// Reads the runs, checks that they belong together, and writes the new one. Shards come in the order of the run that
// they divide, other runs one after the other.
// Fails with one line that names the runs concerned: a run that cannot be read or is still going on (kNotFound,
// kInvalid, kInfra as read_run()), a folder given twice, shards of different divisions or case lists, a shard or a case
// that is there twice (unless allowed), differences in what was asked for (unless allowed), an output folder that is
// one of the runs, is in use, or holds a run that was not merged (kInvalid); a disk that fails (kInfra). Nothing
// but the output folder with its lock is made before all checks have passed.
Result<Merged> merge_runs(const MergeOptions& options);

}  // namespace assay::run
