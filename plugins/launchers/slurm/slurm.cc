#include "plugins/launchers/slurm/slurm.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string_view>
#include <utility>

#include "assay/sdk.hpp"
#include "plugins/launchers/slurm/script.h"
#include "plugins/launchers/slurm/states.h"

namespace assay::launchers {
namespace {

constexpr std::chrono::milliseconds kMostPause{60'000};  // between two tries to submit an array

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

bool all_over(const State* states, size_t count) {
  return std::all_of(states, states + count, [](const State& state) { return state.over(); });
}

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
    for (const Part& part : running.parts) {
      const bool over = all_over(&running.states[part.first], part.job.tasks.size()) && part.unwanted.empty();
      if (part.id != 0 && !over) left.insert(part.id);
    }
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

// "MaxArraySize = N" allows the indices 0 to N - 1.
Result<size_t> SlurmLauncher::most_tasks() {
  if (most_tasks_) return *most_tasks_;
  const Result<ToolOutput> output = tool({profile_.scontrol, "show", "config"});
  if (!output) return output.status();
  const std::string what = profile_.scontrol + " show config";
  if (!output->ok() && passing(*output)) return exhausted(what + ": " + output->words());
  std::istringstream lines(output->out);
  for (std::string line; output->ok() && std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name, equals;
    size_t value = 0;
    if (!(words >> name >> equals >> value) || name != "MaxArraySize" || equals != "=") continue;
    if (value == 0) {
      return infra(what +
                   ": MaxArraySize is 0, so that Slurm takes no array job, which several tasks need; raise it, or " +
                   "have them started by srun (launcher command)");
    }
    most_tasks_ = value;
    return value;
  }
  return SIZE_MAX;  // sbatch has the last word
}

// Arrays of nearly equal size. Together they run no more tasks at once than the job may: each has its share, and where
// there are more arrays than that, the later ones wait for earlier ones.
Result<std::vector<SlurmLauncher::Part>> SlurmLauncher::parts_of(Job job) {
  std::vector<Part> parts(1);
  const size_t tasks = job.tasks.size();
  const Result<size_t> most = tasks > 1 ? most_tasks() : Result<size_t>(size_t{1});
  if (!most) return most.status();
  if (tasks <= *most) {
    parts[0].job = std::move(job);
    return parts;
  }
  const size_t count = (tasks + *most - 1) / *most;
  const size_t lanes = job.most_at_once > 0 ? std::min<size_t>(count, job.most_at_once) : count;
  parts.resize(count);
  std::vector<Task> all = std::move(job.tasks);
  job.tasks.clear();
  size_t first = 0;
  for (size_t i = 0; i < count; ++i) {
    Part& part = parts[i];
    part.first = first;
    const size_t size = tasks / count + (i < tasks % count ? 1 : 0);
    const auto begin = std::make_move_iterator(all.begin() + static_cast<ptrdiff_t>(first));
    std::vector<Task> own(begin, begin + static_cast<ptrdiff_t>(size));
    first += size;
    part.job = job;
    part.job.name += ".p" + std::to_string(i);
    part.job.tasks = std::move(own);
    if (job.most_at_once > 0) {
      part.job.most_at_once =
          static_cast<uint32_t>(job.most_at_once / lanes + (i % lanes < job.most_at_once % lanes ? 1 : 0));
    }
    if (i >= lanes) part.after = i - lanes;
  }
  return parts;
}

Result<uint64_t> SlurmLauncher::start(Job job) {
  const std::string name = job.name;
  const size_t tasks = job.tasks.size();
  auto begun = begun_.find(name);
  if (begun == begun_.end()) {
    Result<std::vector<Part>> parts = parts_of(std::move(job));
    if (!parts) return parts.status();
    begun = begun_.emplace(name, *std::move(parts)).first;
  }
  Part& front = begun->second.front();
  Result<uint64_t> id = submit(front.job, 0);
  if (!id) {
    if (id.status().code() != StatusCode::kExhausted) begun_.erase(begun);
    return id.status();
  }
  front.id = *id;
  Running running{.parts = std::move(begun->second), .states = std::vector<State>(tasks)};
  begun_.erase(begun);
  submit_missing(&running);
  jobs_.insert_or_assign(*id, std::move(running));
  return id;
}

// The first one that Slurm cannot take now ends the round. What it refuses once, it would refuse again.
void SlurmLauncher::submit_missing(Running* running) {
  std::vector<Part>& parts = running->parts;
  for (Part& part : parts) {
    State* states = &running->states[part.first];
    if (part.id != 0 || all_over(states, part.job.tasks.size())) continue;
    if (std::chrono::steady_clock::now() < running->next_try) return;
    std::optional<size_t> after = part.after;
    while (after && parts[*after].id == 0) after = parts[*after].after;  // it was cancelled
    const Result<uint64_t> id = submit(part.job, after ? parts[*after].id : 0);
    if (id) {
      part.id = *id;
      running->told_over = false;
      running->pause = kLeastPause;
      for (size_t i = 0; i < part.job.tasks.size(); ++i) {
        if (!states[i].over()) states[i] = State();
      }
      continue;
    }
    if (id.status().code() == StatusCode::kExhausted) {
      running->missing = id.status();
      running->next_try = std::chrono::steady_clock::now() + running->pause;
      running->pause = std::min(running->pause * 2, kMostPause);
      const auto waits = std::find_if(states, states + part.job.tasks.size(), [](const State& s) { return !s.over(); });
      waits->reason = id.status().message();  // once is enough
      return;
    }
    for (size_t i = part.first; i < running->states.size(); ++i) {
      if (!running->states[i].over()) running->states[i] = lost(id.status().message(), false);
    }
    break;
  }
  running->missing = {};
}

void SlurmLauncher::end_unwanted(Part* part) const {
  std::vector<std::string> names;
  for (const size_t task : part->unwanted) names.push_back(std::to_string(part->id) + "_" + std::to_string(task));
  if (!names.empty() && cancel_named(names).ok()) part->unwanted.clear();  // else the next time
}

Result<uint64_t> SlurmLauncher::submit(const Job& job, uint64_t after) {
  const std::filesystem::path script = folder_ / (job.name + ".sh");
  if (Status written = write_script(script, batch_script(profile_, job, folder_)); !written.ok()) return written;
  if (unanswered_.count(job.name) != 0) {
    const Result<std::vector<uint64_t>> found = jobs_called(job.name);
    if (!found) return found.status();
    if (!found->empty()) {
      unanswered_.erase(job.name);
      return found->front();
    }
  }
  std::vector<std::string> argv = {profile_.sbatch, "--parsable", script.string()};
  if (after != 0) argv.insert(argv.begin() + 2, "--dependency=afterany:" + std::to_string(after));
  Result<ToolOutput> output = tool(argv);
  if (!output) return output.status();
  if (!output->ok() && after != 0 && output->words().find("ependency") != std::string::npos) {
    argv.erase(argv.begin() + 2);  // Slurm has forgotten the other one: it is over
    output = tool(argv);
    if (!output) return output.status();
  }
  if (!output->ok()) {
    if (!passing(*output)) return infra(profile_.sbatch + ": " + output->words());
    unanswered_.insert(job.name);
    return exhausted(profile_.sbatch + ": " + output->words());
  }
  const size_t last = output->out.find_last_not_of("\n");  // a site's sbatch may greet before it answers
  const size_t line = output->out.rfind('\n', last == std::string::npos ? 0 : last);
  const std::optional<uint64_t> id =
      leading_number(std::string_view(output->out).substr(line == std::string::npos ? 0 : line + 1));
  if (!id) {
    unanswered_.insert(job.name);
    return infra(profile_.sbatch + ": its answer '" + output->words() + "' has no job id");
  }
  unanswered_.erase(job.name);
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
  submit_missing(&running);
  bool over = true;
  for (Part& part : running.parts) {
    if (part.id == 0) continue;
    end_unwanted(&part);
    State* states = &running.states[part.first];
    if (Status seen = look_at(part, states); !seen.ok()) return seen;
    over = over && all_over(states, part.job.tasks.size());
  }
  if (over && running.told_over && !running.missing.ok()) return running.missing;
  if (over && !running.told_over) running.next_try = {};  // they have made room
  running.told_over = over;
  return running.states;
}

Status SlurmLauncher::look_at(const Part& part, State* states) {
  const size_t count = part.job.tasks.size();
  if (all_over(states, count)) return {};
  const std::string id = std::to_string(part.id);
  const Result<ToolOutput> output = tool({profile_.scontrol, "-o", "show", "job", id});
  if (!output) return output.status();
  if (!output->ok() && !unknown_job(*output)) return infra(profile_.scontrol + ": " + output->words());
  std::map<size_t, State> told = parse_scontrol(output->out);
  std::optional<std::map<size_t, State>> accounted;
  for (size_t i = 0; i < count; ++i) {
    State& state = states[i];
    if (state.over()) continue;
    if (const auto one = told.find(i); one != told.end()) {
      state = one->second;
      if (waits_for_ever(state)) [[maybe_unused]]
        const Status status = cancel_named({id + "_" + std::to_string(i)});
      continue;
    }
    // Slurm has forgotten it (MinJobAge).
    if (!accounted) accounted = from_accounting(part.id);
    const auto one = accounted->find(i);
    const State last = state;
    if (one != accounted->end() && one->second.over()) {
      state = one->second;
    } else if (std::optional<State> end = from_end_file(part.job, i)) {
      state = *std::move(end);
    } else {
      state = lost("Slurm no longer knows the task, and it left no exit code", true);
    }
    state.restarts = last.restarts;
    if (state.where.empty()) state.where = last.where;
  }
  return {};
}

Status SlurmLauncher::cancel(uint64_t id, std::optional<size_t> task) {
  const auto found = jobs_.find(id);  // scancel would end whatever job of this user has the number
  if (found == jobs_.end() || (task && *task >= found->second.states.size())) {
    return not_found("no job or task " + std::to_string(id) + (task ? "_" + std::to_string(*task) : "") +
                     " of this run");
  }
  std::vector<std::string> names;
  for (Part& part : found->second.parts) {
    const size_t count = part.job.tasks.size();
    if (task && (*task < part.first || *task >= part.first + count)) continue;
    if (part.id != 0) {
      names.push_back(std::to_string(part.id) + (task ? "_" + std::to_string(*task - part.first) : ""));
      continue;
    }
    for (size_t i = task ? *task - part.first : 0; i < (task ? *task - part.first + 1 : count); ++i) {
      State& state = found->second.states[part.first + i];
      if (state.over()) continue;
      state = lost("cancelled before it was submitted", false);
      part.unwanted.insert(i);
      found->second.told_over = false;
    }
  }
  return names.empty() ? Status() : cancel_named(names);
}

Status SlurmLauncher::cancel_named(const std::vector<std::string>& names) const {
  std::vector<std::string> argv = {profile_.scancel};
  argv.insert(argv.end(), names.begin(), names.end());
  const Result<ToolOutput> output = tool(argv);
  if (!output) return output.status();
  if (output->ok() || unknown_job(*output)) return {};
  return infra(profile_.scancel + " " + names.front() + ": " + output->words());
}

}  // namespace assay::launchers
