// The lines of results.jsonl that the runner itself writes about a run and its cases. Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/run/plan.h"
#include "core/run/run.h"

namespace assay::run {

// Everything asked for that can change a verdict; `jobs`, which cannot, is in it for the record.
nlohmann::ordered_json options_json(const RunOptions& options);

// "thing: recorded X, now Y" for each member, but for jobs, in which what a journal recorded differs from `now`. A
// member that the journal does not have is passed over: an earlier version wrote it.
std::vector<std::string> option_differences(const nlohmann::ordered_json& recorded, const nlohmann::ordered_json& now);

nlohmann::ordered_json started_event(const RunOptions& options, const RunInfo& info);
nlohmann::ordered_json planned_event(const CaseOutcome& outcome, const std::string& digest);
// case_finished of a case that was read from a journal.
nlohmann::ordered_json outcome_event(const CaseOutcome& outcome);
nlohmann::ordered_json finished_event(const RunSummary& summary, bool strict);

}  // namespace assay::run
