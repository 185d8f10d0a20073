// The body of assay-worker: one load, then the cases of its plan one after the other.
#pragma once

#include <filesystem>

namespace assay::run {

// Reads the plan, writes events (events.h) to `events` and runs the cases. Returns the exit code of the process: 0 when
// every case got its verdict, whatever it is; 2 when the plan or the event file cannot be used (said on stderr).
// Takes stdout and stderr of the process into its hands: they go to engine.log while a case runs.
int run_worker(const std::filesystem::path& plan, const std::filesystem::path& events);

}  // namespace assay::run
