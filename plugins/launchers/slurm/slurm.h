// Workers as tasks of array jobs of an existing Slurm, driven by its own commands.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "assay/plugin_abi.h"
#include "plugins/launchers/common/job.h"
#include "plugins/launchers/common/tool.h"
#include "plugins/launchers/slurm/profile.h"

namespace assay::launchers {

// Methods as assay_launcher_table says. A job's id is Slurm's. For one thread.
class SlurmLauncher {
 public:
  static Result<std::unique_ptr<SlurmLauncher>> open(const assay_launcher_config& config);
  // Cancels the jobs that are not over, by their ids, those that a submission without an answer made included.
  ~SlurmLauncher();
  SlurmLauncher(const SlurmLauncher&) = delete;
  SlurmLauncher& operator=(const SlurmLauncher&) = delete;

  // Writes NAME.sh to the folder and submits it. Where an earlier try to submit the same name got no answer, the job
  // that it may have made is looked for first. kExhausted: it got none now.
  Result<uint64_t> start(Job job);
  Result<std::vector<State>> poll(uint64_t id);
  Status cancel(uint64_t id, std::optional<size_t> task);

 private:
  struct Running {
    Job job;
    std::vector<State> states;
  };

  SlurmLauncher(SlurmProfile profile, std::filesystem::path folder)
      : profile_(std::move(profile)), folder_(std::move(folder)) {}

  Result<ToolOutput> tool(const std::vector<std::string>& argv) const;
  Result<std::vector<uint64_t>> jobs_called(const std::string& name) const;
  std::map<size_t, State> from_accounting(uint64_t id) const;
  std::optional<State> from_end_file(const Job& job, size_t task) const;

  SlurmProfile profile_;
  std::filesystem::path folder_;
  std::map<uint64_t, Running> jobs_;
  std::set<std::string> unanswered_;  // names of jobs that there may be, without a known id
};

}  // namespace assay::launchers
