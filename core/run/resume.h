// Going on with a run that was killed or cancelled, or that the machine failed under.
//
// The journal is appended to: a run_resumed line, then the lines of what is run again. Finished cases keep their
// verdicts and results. Run again are cases without a verdict, INFRA ones, those whose verdict is asked for, and those
// whose config or golden files have changed since they were planned. Of a case that is run several times, repeats that
// were over before the interruption count, unless the case as a whole is run again.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/run/folder_lock.h"
#include "core/run/plan.h"
#include "core/run/read_run.h"

namespace assay::run {

struct Resumption {
  FolderLock lock;
  RunRecord record;
  std::vector<bool> again;               // (rows) is run again
  std::vector<bool> dropped;             // (rows) its case has other rows now
  std::vector<size_t> repeats;           // (rows) that count
  std::vector<std::string> changed;      // ids of rows whose case files differ
  std::set<std::string> names;           // of the cases to plan
  std::map<std::string, size_t> row_of;  // by id
  std::vector<std::string> case_of;      // (rows) name of the case
};

// Takes the lock of options.output and reads its run. Fails with one line, kInvalid where the folder is in use, the run
// is that of another command or its options, environment, platform, version or cases differ from what is asked for now
// (all differences, each with what was recorded and what is asked for); else as read_run() does.
Result<Resumption> begin_resume(const RunOptions& options);

// Takes those rows out of `plan` (made with options.only = names) that are not run again.
void settle_resume(Resumption* resumption, Plan* plan);

// The run_resumed line, and what it says for people.
nlohmann::ordered_json resumed_event(const Resumption& resumption, const RunOptions& options);
std::string describe(const Resumption& resumption);

// Every case of the run in its order: those run again from `plan`, the others as they were.
std::vector<CaseOutcome> all_outcomes(Resumption& resumption, Plan& plan);

// Number of the first worker that was not there before, by the files in OUTPUT/workers.
uint64_t next_worker(const std::filesystem::path& output);

}  // namespace assay::run
