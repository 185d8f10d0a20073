// What Slurm says about the tasks of an array job. Pure.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "plugins/launchers/common/job.h"

namespace assay::launchers {

// A state by its name in scontrol and sacct ("NODE_FAIL", "CANCELLED by 0"); `reason` is Slurm's ("None": no reason),
// `exit_code` "3:0", code and signal.
State state_of(std::string_view name, const std::string& reason, const std::string& exit_code);

// A task that Slurm still holds, but that will never run: it has to be cancelled.
bool waits_for_ever(const State& state);

// `text` as `scontrol -o show job ID` prints it: one line a task, or for several that wait together. Tasks that are not
// in it are not in the result.
std::map<size_t, State> parse_scontrol(std::string_view text);

// `text` as `sacct -n -P -X -j ID -o JobID,State,ExitCode,NodeList` prints it.
std::map<size_t, State> parse_sacct(std::string_view text);

}  // namespace assay::launchers
