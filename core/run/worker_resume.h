// A worker that goes on where another one stopped: its launcher's system began the task anew.
#pragma once

#include <filesystem>

#include "assay/status.h"
#include "core/run/worker_plan.h"

namespace assay::run {

// Takes out of `plan` the cases and repeats that have ended according to the file of events, and removes what the case
// that was running then left half written. A file that does not exist: nothing has ended.
Status skip_what_is_done(const std::filesystem::path& events, WorkerPlan* plan);

}  // namespace assay::run
