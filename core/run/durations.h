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

// Reads FILE, or FOLDER/results.jsonl: the journal of a run or of a merge, or a durations.json. Of a journal those
// cases count that ended with a verdict other than INFRA; of a case that ended twice, the later end. A torn last line
// is no line. Fails with one line: kNotFound, kInvalid (neither of both, with the line's number), kInfra (unreadable).
Result<Durations> read_durations(const std::filesystem::path& path);

// The text of a durations.json; cases that took no time or ended as INFRA are left out.
std::string durations_json(const std::vector<CaseOutcome>& outcomes);

}  // namespace assay::run
