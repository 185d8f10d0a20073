#include "plugins/launchers/slurm/slurm.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <sstream>
#include <string_view>
#include <utility>

#include "assay/sdk.hpp"
#include "plugins/launchers/slurm/script.h"
#include "plugins/launchers/slurm/states.h"

namespace assay::launchers {
namespace {

// Parts of what Slurm's commands say when another try may go better.
constexpr std::array<std::string_view, 13> kPassing = {"Unable to contact slurm controller",
                                                       "Socket timed out",
                                                       "Resource temporarily unavailable",
                                                       "temporarily unable",
                                                       "Connection refused",
                                                       "Connection timed out",
                                                       "Zero Bytes were transmitted",
                                                       "in standby mode",
                                                       "SubmitJobPerUserLimit",
                                                       "AssocMaxSubmitJobLimit",
                                                       "AssocGrpSubmitJobsLimit",
                                                       "Transport endpoint",
                                                       "Too many"};

bool passing(const ToolOutput& output) {
  const std::string words = output.words();
  return output.timed_out || std::any_of(kPassing.begin(), kPassing.end(),
                                         [&](std::string_view part) { return words.find(part) != std::string::npos; });
}

bool unknown_job(const ToolOutput& output) { return output.words().find("Invalid job id") != std::string::npos; }

std::optional<uint64_t> leading_number(std::string_view text) {
  uint64_t value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || value == 0) return std::nullopt;
  return value;
}

}  // namespace

Result<std::unique_ptr<SlurmLauncher>> SlurmLauncher::open(const assay_launcher_config& config) {
  Result<SlurmProfile> profile = parse_profile(sdk::text(config.options));
  if (!profile) return profile.status();
  return std::unique_ptr<SlurmLauncher>(new SlurmLauncher(*std::move(profile), sdk::text(config.folder)));
}

SlurmLauncher::~SlurmLauncher() {
  std::set<uint64_t> left;
  for (const auto& [id, running] : jobs_) {
    const bool over =
        std::all_of(running.states.begin(), running.states.end(), [](const State& state) { return state.over(); });
    if (!over) left.insert(id);
  }
  for (const std::string& name : unanswered_) {
    const Result<std::vector<uint64_t>> ids = jobs_called(name);
    if (ids) left.insert(ids->begin(), ids->end());
  }
  if (left.empty()) return;
  std::vector<std::string> argv = {profile_.scancel, "--quiet"};
  for (const uint64_t id : left) argv.push_back(std::to_string(id));
  [[maybe_unused]] const Result<ToolOutput> done = tool(argv);
}

Result<ToolOutput> SlurmLauncher::tool(const std::vector<std::string>& argv) const {
  return run_tool(argv, std::chrono::milliseconds(static_cast<int64_t>(profile_.command_seconds * 1000)), folder_);
}

// Of this user alone, and those that are over already too: a short job must not be submitted again.
Result<std::vector<uint64_t>> SlurmLauncher::jobs_called(const std::string& name) const {
  const Result<ToolOutput> found = tool({profile_.squeue, "--noheader", "--name=" + name,
                                         "--user=" + std::to_string(::geteuid()), "--states=all", "--format=%F"});
  if (!found) return found.status();
  if (!found->ok()) return exhausted(profile_.squeue + ": " + found->words());
  std::set<uint64_t> ids;
  std::istringstream lines(found->out);
  for (std::string line; std::getline(lines, line);) {
    if (const std::optional<uint64_t> id = leading_number(line)) ids.insert(*id);
  }
  return std::vector<uint64_t>(ids.begin(), ids.end());
}

Result<uint64_t> SlurmLauncher::start(Job job) {
  const std::filesystem::path script = folder_ / (job.name + ".sh");
  if (Status written = write_script(script, batch_script(profile_, job, folder_)); !written.ok()) return written;
  std::optional<uint64_t> id;
  if (unanswered_.count(job.name) != 0) {
    const Result<std::vector<uint64_t>> found = jobs_called(job.name);
    if (!found) return found.status();
    if (!found->empty()) id = found->front();
  }
  if (!id) {
    const Result<ToolOutput> output = tool({profile_.sbatch, "--parsable", script.string()});
    if (!output) return output.status();
    if (!output->ok()) {
      if (!passing(*output)) return infra(profile_.sbatch + ": " + output->words());
      unanswered_.insert(job.name);
      return exhausted(profile_.sbatch + ": " + output->words());
    }
    const size_t last = output->out.find_last_not_of("\n");  // a site's sbatch may greet before it answers
    const size_t line = output->out.rfind('\n', last == std::string::npos ? 0 : last);
    id = leading_number(std::string_view(output->out).substr(line == std::string::npos ? 0 : line + 1));
    if (!id) {
      unanswered_.insert(job.name);
      return infra(profile_.sbatch + ": its answer '" + output->words() + "' has no job id");
    }
  }
  unanswered_.erase(job.name);
  std::vector<State> states(job.tasks.size());
  jobs_.insert_or_assign(*id, Running{std::move(job), std::move(states)});
  return *id;
}

std::map<size_t, State> SlurmLauncher::from_accounting(uint64_t id) const {
  const Result<ToolOutput> output =
      tool({profile_.sacct, "-n", "-P", "-X", "-j", std::to_string(id), "-o", "JobID,State,ExitCode,NodeList"});
  return output && output->ok() ? parse_sacct(output->out) : std::map<size_t, State>();
}

std::optional<State> SlurmLauncher::from_end_file(const Job& job, size_t task) const {
  std::ifstream file(end_file(folder_, job, task));
  int code = 0;
  if (!(file >> code)) return std::nullopt;
  return exited_in_shell(code);
}

Result<std::vector<State>> SlurmLauncher::poll(uint64_t id) {
  const auto found = jobs_.find(id);
  if (found == jobs_.end()) return not_found("no job " + std::to_string(id) + " of this run");
  Running& running = found->second;
  const auto over = [](const State& state) { return state.over(); };
  if (std::all_of(running.states.begin(), running.states.end(), over)) return running.states;
  const Result<ToolOutput> output = tool({profile_.scontrol, "-o", "show", "job", std::to_string(id)});
  if (!output) return output.status();
  if (!output->ok() && !unknown_job(*output)) return infra(profile_.scontrol + ": " + output->words());
  std::map<size_t, State> told = parse_scontrol(output->out);
  std::optional<std::map<size_t, State>> accounted;
  for (size_t i = 0; i < running.states.size(); ++i) {
    State& state = running.states[i];
    if (state.over()) continue;
    if (const auto one = told.find(i); one != told.end()) {
      state = one->second;
      if (waits_for_ever(state)) [[maybe_unused]]
        const Status status = cancel(id, i);
      continue;
    }
    // Slurm has forgotten it (MinJobAge).
    if (!accounted) accounted = from_accounting(id);
    const auto one = accounted->find(i);
    const State last = state;
    if (one != accounted->end() && one->second.over()) {
      state = one->second;
    } else if (std::optional<State> end = from_end_file(running.job, i)) {
      state = *std::move(end);
    } else {
      state = lost("Slurm no longer knows the task, and it left no exit code", true);
    }
    state.restarts = last.restarts;
    if (state.where.empty()) state.where = last.where;
  }
  return running.states;
}

Status SlurmLauncher::cancel(uint64_t id, std::optional<size_t> task) {
  const std::string name = std::to_string(id) + (task ? "_" + std::to_string(*task) : "");
  const auto found = jobs_.find(id);  // scancel would end whatever job of this user has the number
  if (found == jobs_.end() || (task && *task >= found->second.states.size())) {
    return not_found("no job or task " + name + " of this run");
  }
  const Result<ToolOutput> output = tool({profile_.scancel, name});
  if (!output) return output.status();
  if (output->ok() || unknown_job(*output)) return {};
  return infra(profile_.scancel + " " + name + ": " + output->words());
}

}  // namespace assay::launchers
