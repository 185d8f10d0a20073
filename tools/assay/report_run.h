// From outcomes of a run to what reports draw.
#pragma once

#include <string>

#include "core/report/report_run.h"
#include "core/run/read_run.h"

namespace assay::cli {

// "static_legacy on cpu (...), 2 requests, batch 1, ...": the figures of one case on one line.
std::string summary_line(const run::CaseSummary& summary);

// Reads the end of the engine's log of what does not pass.
report::ReportCase report_case(const run::CaseOutcome& outcome, bool strict);

// Everything but the history.
report::ReportRun report_run(const run::RunRecord& record);

// The command as a shell reads it back.
std::string command_line(const std::vector<std::string>& words);

// kNotFound where --history names no folder; an empty word is fine.
Status check_history(const std::string& directory);

// Adds the runs of the folders in `directory` that began before `run`, at most kMaxHistoryRuns and kMaxHistoryBytes of
// journals, newest first. Folders without a journal are no runs, nor are shards; journals that cannot be read become a
// note each.
void add_history(const std::string& directory, report::ReportRun* run);
inline constexpr size_t kMaxHistoryRuns = 30;
inline constexpr uint64_t kMaxHistoryBytes = 200'000'000;

}  // namespace assay::cli
