// Workers as tasks of array jobs of an existing Slurm, driven by its own commands.
#pragma once

#include <chrono>
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

// Methods as assay_launcher_table says. A job with more tasks than Slurm allows an array (MaxArraySize) becomes several
// arrays; its id is Slurm's of the first one. Tasks of arrays that Slurm has no room for yet are WAITING. For one
// thread.
class SlurmLauncher {
 public:
  static Result<std::unique_ptr<SlurmLauncher>> open(const assay_launcher_config& config);
  // Cancels the jobs that are not over, by their ids, those that a submission without an answer made included.
  ~SlurmLauncher();
  SlurmLauncher(const SlurmLauncher&) = delete;
  SlurmLauncher& operator=(const SlurmLauncher&) = delete;

  // Writes NAME.sh to the folder and submits it; of several arrays NAME.p0.sh, NAME.p1.sh ... Where an earlier try to
  // submit the same name got no answer, the job that it may have made is looked for first. The job is there with its
  // first array: kExhausted or a refusal are of that one.
  Result<uint64_t> start(Job job);
  // Submits arrays that are missing, too, with pauses of up to a minute. One that Slurm refuses is LOST with its words,
  // and so are those after it; the others go on.
  Result<std::vector<State>> poll(uint64_t id);
  Status cancel(uint64_t id, std::optional<size_t> task);

 private:
  struct Part {  // an array of Slurm's
    Job job;
    size_t first = 0;             // task of the whole
    std::optional<size_t> after;  // part that has to be over first
    uint64_t id = 0;              // 0: not submitted
    std::set<size_t> unwanted;    // its tasks that were cancelled before it was submitted
  };
  struct Running {
    std::vector<Part> parts;
    std::vector<State> states = {};  // of all parts, one after the other
    Status missing = {};             // why there is an array that is not submitted; ok: there is none
    bool told_over = false;          // poll has told that all tasks of those that are submitted are over
    std::chrono::steady_clock::time_point next_try = {};  // to submit one
    std::chrono::milliseconds pause = kLeastPause;        // after the next failure
  };
  static constexpr std::chrono::milliseconds kLeastPause{1000};

  SlurmLauncher(SlurmProfile profile, std::filesystem::path folder)
      : profile_(std::move(profile)), folder_(std::move(folder)) {}

  Result<ToolOutput> tool(const std::vector<std::string>& argv) const;
  Result<std::vector<uint64_t>> jobs_called(const std::string& name) const;
  std::map<size_t, State> from_accounting(uint64_t id) const;
  std::optional<State> from_end_file(const Job& job, size_t task) const;
  Result<size_t> most_tasks();  // of an array
  Result<std::vector<Part>> parts_of(Job job);
  Result<uint64_t> submit(const Job& job, uint64_t after);
  void submit_missing(Running* running);
  void end_unwanted(Part* part) const;
  // `states`: of the part's tasks; it is submitted.
  Status look_at(const Part& part, State* states);
  Status cancel_named(const std::vector<std::string>& names) const;

  SlurmProfile profile_;
  std::filesystem::path folder_;
  std::optional<size_t> most_tasks_;                // once Slurm has told
  std::map<std::string, std::vector<Part>> begun_;  // by the job's name: none is submitted
  std::map<uint64_t, Running> jobs_;
  std::set<std::string> unanswered_;  // names of jobs that there may be, without a known id
};

}  // namespace assay::launchers
