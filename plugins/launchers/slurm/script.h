// The batch script of a job. Pure.
#pragma once

#include <filesystem>
#include <string>

#include "plugins/launchers/common/job.h"
#include "plugins/launchers/slurm/profile.h"

namespace assay::launchers {

// Files that a task leaves in the launcher's folder.
std::filesystem::path end_file(const std::filesystem::path& folder, const Job& job, size_t task);  // its exit code

// One array job, 0 to the number of tasks - 1. Task i runs its words with its output appended to its log and writes its
// exit code to end_file.
std::string batch_script(const SlurmProfile& profile, const Job& job, const std::filesystem::path& folder);

// Seconds as sbatch --time takes them, rounded up to a minute: "90", "2-03:04:00" from a day on.
std::string slurm_time(double seconds);

}  // namespace assay::launchers
