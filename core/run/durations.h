// How long cases took before: read from earlier runs, kept in a small file.
//
//   durations.json   {"schema": 1, "cases": {NAME: {"seconds": s, "load_seconds": s, "repeats": n}, ...}}
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "assay/status.h"
#include "core/run/run.h"

namespace assay::run {

inline constexpr int kDurationsSchema = 1;
inline constexpr double kNoSeconds = 1e-6;  // recorded of a case that was skipped, or took less

// Reads FILE, or FOLDER/results.jsonl: the journal of a run or of a merge (as read_run() does: of a case that was run
// again its last end counts, a torn last line is no line), or a durations.json. Fails with one line: kNotFound,
// kInvalid (neither of both; of a journal with the line's number), kInfra (unreadable).
Result<Durations> read_durations(const std::filesystem::path& path);

// How long the cases took. A SKIPPED one took kNoSeconds; those that took no time otherwise or ended as INFRA are left
// out.
Durations durations_of(const std::vector<CaseOutcome>& outcomes);

// The text of a durations.json of durations_of().
std::string durations_json(const std::vector<CaseOutcome>& outcomes);

}  // namespace assay::run
