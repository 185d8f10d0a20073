#include "core/run/run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <system_error>
#include <thread>
#include <utility>

#include "core/plugin/registry.h"
#include "core/run/events.h"
#include "core/run/folder_lock.h"
#include "core/run/journal.h"
#include "core/run/launch_options.h"
#include "core/run/launched_supervisor.h"
#include "core/run/launcher.h"
#include "core/run/leash.h"
#include "core/run/plan.h"
#include "core/run/recorder.h"
#include "core/run/repeats.h"
#include "core/run/resume.h"
#include "core/run/run_header.h"
#include "core/run/secrets.h"
#include "core/run/shards.h"
#include "core/run/supervisor.h"

namespace assay::run {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

// Time and process: unique on one machine, sorts by time.
std::string make_run_id() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  ::gmtime_r(&now, &utc);
  return fmt::format("{:04}{:02}{:02}T{:02}{:02}{:02}Z-{}", utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday,
                     utc.tm_hour, utc.tm_min, utc.tm_sec, ::getpid());
}

// A result of an earlier run must not be taken for this one's. The first `repeats` of a case that is run several times
// count, and stay. A folder that is a link belongs to another run: the link goes, what it leads to stays.
void clear_results(const std::filesystem::path& output, const std::string& id, size_t repeats) {
  std::error_code code;
  const std::filesystem::path folder = folder_of_repeat(output, id, 1);
  if (std::filesystem::is_symlink(folder, code)) std::filesystem::remove(folder, code);
  if (repeats == 0) {
    std::filesystem::remove(folder / "actual.json", code);
    std::filesystem::remove(folder / "reference.json", code);
    std::filesystem::remove_all(folder / kResavedFolder, code);
  }
  for (int repeat = std::max(2, static_cast<int>(repeats) + 1);; ++repeat) {
    if (std::filesystem::remove_all(folder_of_repeat(output, id, repeat), code) == 0) break;
  }
}

// Takes what the repeats of resumed cases came to from the journal into the recorder.
void restore_repeats(const Resumption& resumption, const Plan& plan, Recorder& recorder) {
  for (size_t i = 0; i < plan.cases.size(); ++i) {
    const auto row = resumption.row_of.find(plan.cases[i].order.id);
    if (row == resumption.row_of.end()) continue;
    for (size_t repeat = 0; repeat < resumption.repeats[row->second]; ++repeat) {
      recorder.finish_repeat(i, Json::parse(resumption.record.rows[row->second].repeats[repeat]));
    }
  }
}

// A launcher that is open.
struct Launched {
  std::string run_id;
  LaunchOptions options;
  Launcher launcher;
};

// The folder and those above it, as far as they do not exist; the innermost first.
std::vector<std::filesystem::path> missing_folders(std::filesystem::path folder) {
  std::vector<std::filesystem::path> missing;
  std::error_code code;
  for (; folder.has_relative_path() && !std::filesystem::exists(folder, code); folder = folder.parent_path()) {
    missing.push_back(folder);
  }
  return missing;
}

void remove_empty(const std::vector<std::filesystem::path>& folders) {
  std::error_code code;
  for (const std::filesystem::path& folder : folders) std::filesystem::remove(folder, code);
}

Result<std::unique_ptr<Launched>> open_launcher(const RunOptions& options, const std::string& run_id,
                                                plugin::PluginRegistry& registry) {
  Result<LaunchOptions> launch = parse_launch_options(options.launcher_options);
  if (!launch) return launch.status();
  const Result<const plugin::Plugin*> plugin = registry.find(plugin::Kind::kLauncher, options.launcher);
  if (!plugin) return invalid("--launcher: " + plugin.status().message());
  const std::filesystem::path folder = options.output / "launcher";
  const std::vector<std::filesystem::path> made = missing_folders(folder);
  std::error_code code;
  std::filesystem::create_directories(folder, code);
  if (!code) std::filesystem::permissions(folder, std::filesystem::perms::owner_all, code);  // it will hold secrets
  if (code) {
    remove_empty(made);
    return infra(fmt::format("{}: {}; choose another --output", folder.string(), code.message()));
  }
  Result<Launcher> launcher = Launcher::open(**plugin, launch->plugin, folder, run_id);
  if (!launcher) {
    remove_empty(made);
    return launcher.status();
  }
  return std::make_unique<Launched>(Launched{run_id, *std::move(launch), *std::move(launcher)});
}

// Logs beside engine.log, which is clean already, and those of workers: whoever wrote to them is gone.
void clean_logs(const RunOptions& options, const Plan& plan, Recorder& recorder) {
  std::vector<std::filesystem::path> folders = {options.output / "workers"};
  for (const PlannedCase& planned : plan.cases) {
    for (int repeat = 1; repeat <= planned.order.repeats && !planned.settled; ++repeat) {
      folders.push_back(folder_of_repeat(options.output, planned.order.id, repeat));
    }
  }
  for (const std::filesystem::path& folder : folders) {
    const Status done = clean_texts(recorder.redactor(), folder, Below::kNoneButLogs);
    if (done.ok()) continue;
    Json event = make_event(event::kNote);
    event["message"] = done.message();
    recorder.note(event);
  }
}

struct Ending {
  uint64_t crashes = 0;
  bool cancelled = false;
};

Result<Ending> supervise_here(const RunOptions& options, const Plan& plan, Recorder& recorder) {
  Supervisor supervisor(options, plan, recorder);
  supervisor.run();
  return Ending{supervisor.crashes(), supervisor.cancelled()};
}

Result<Ending> supervise_launched(const RunOptions& options, const Plan& plan, Recorder& recorder, Launched& launched) {
  const auto interval = std::chrono::milliseconds(static_cast<int64_t>(launched.options.heartbeat * 1000 / 6));
  Result<std::unique_ptr<Heartbeat>> heart =
      Heartbeat::start(options.output / "workers" / "heartbeat", launched.run_id, plan.first_worker, interval);
  if (!heart) return heart.status();
  if (plan.first_worker > 0) {  // those of an earlier session that still live end before their cases are run again
    std::this_thread::sleep_for(2 * Leash::look_interval(launched.options.heartbeat));
  }
  LaunchedSupervisor supervisor(options, plan, recorder, launched.launcher, launched.options);
  supervisor.run();
  return Ending{supervisor.crashes(), supervisor.cancelled()};
}

}  // namespace

std::vector<Verdict> RunSummary::verdicts() const {
  std::vector<Verdict> list;
  list.reserve(outcomes.size());
  for (const CaseOutcome& outcome : outcomes) list.push_back(outcome.verdict.verdict);
  return list;
}

Result<RunSummary> run(const RunOptions& asked, RunObserver& observer) {
  const Clock::time_point begin = Clock::now();
  RunOptions options = asked;
  std::error_code code;
  options.output = std::filesystem::absolute(asked.output, code);  // workers may look at it from elsewhere
  if (::access(options.worker.c_str(), X_OK) != 0) {
    return infra(fmt::format("{}: no executable worker; check the installation", options.worker.string()));
  }
  plugin::PluginRegistry registry(options.plugins);
  std::optional<Resumption> resumption;
  if (options.resume) {
    Result<Resumption> begun = begin_resume(options);
    if (!begun) return begun.status();
    resumption = *std::move(begun);
    options.only = resumption->names;
  } else if (lock_holder(options.output).empty()) {  // else the lock says who is there
    if (Status free = check_new_output(options.output); !free.ok()) return free;
  }
  Result<Plan> plan = make_plan(options, registry);
  if (!plan) return plan.status();
  if (resumption) {
    settle_resume(&*resumption, &*plan);
    plan->first_worker = next_worker(options.output);
  }
  const std::string run_id = resumption ? resumption->record.info.run_id : make_run_id();
  std::unique_ptr<Launched> launched;  // before the journal: one that refuses its options costs no earlier results
  if (!options.launcher.empty()) {
    Result<std::unique_ptr<Launched>> opened = open_launcher(options, run_id, registry);
    if (!opened) return opened.status();
    launched = *std::move(opened);
  }
  Result<Journal> journal =
      resumption ? Journal::reopen(options.output, std::move(resumption->lock)) : Journal::open(options.output);
  if (!journal) return journal.status();

  RunInfo info{.run_id = run_id,
               .output = options.output,
               .cases = plan->cases.size(),
               .filtered = plan->filtered,
               .groups = plan->groups.size(),
               .jobs = options.jobs,
               .shard = plan->shard};
  if (resumption) {
    info.filtered = resumption->record.info.filtered;
    info.shard = resumption->record.info.shard;
    info.started = resumption->record.started;
    info.resumed = describe(*resumption);
    for (size_t i = 0; i < resumption->again.size(); ++i) {
      info.kept += !resumption->again[i] && !resumption->dropped[i] ? 1 : 0;
    }
    info.cases += info.kept;
  } else if (!plan->shard_file.empty()) {
    if (Status written = write_file(options.output / kShardsFile, plan->shard_file); !written.ok()) return written;
  } else {
    std::filesystem::remove(options.output / kShardsFile, code);  // of an earlier run
  }
  for (Group& group : plan->groups) group.head.run_id = info.run_id;
  const command::Redactor secrets = secrets_of(options, *plan);
  for (PlannedCase& planned : plan->cases) planned.outcome.reproduce = secrets.text(planned.outcome.reproduce);
  Recorder recorder(*plan, *journal, observer, secrets);
  std::vector<Json> beginning = {resumption ? resumed_event(*resumption, options) : started_event(options, info)};
  for (const PlannedCase& planned : plan->cases) {
    beginning.push_back(planned_event(planned.outcome, planned.digest));
  }
  recorder.note_all(std::move(beginning));
  if (resumption) restore_repeats(*resumption, *plan, recorder);
  observer.run_started(info);
  if (resumption) {
    for (size_t i = 0; i < resumption->again.size(); ++i) {
      if (!resumption->again[i] && !resumption->dropped[i]) observer.case_kept(resumption->record.summary.outcomes[i]);
    }
  }
  for (size_t i = 0; i < plan->cases.size(); ++i) {
    if (plan->cases[i].settled) recorder.finish(i, CaseVerdict(plan->cases[i].outcome.verdict));
  }
  for (size_t i = 0; i < plan->cases.size(); ++i) {
    clear_results(options.output, plan->cases[i].order.id, static_cast<size_t>(recorder.next_repeat(i)) - 1);
  }
  const Result<Ending> ending = options.launcher.empty() ? supervise_here(options, *plan, recorder)
                                                         : supervise_launched(options, *plan, recorder, *launched);
  if (!ending) return ending.status();
  clean_logs(options, *plan, recorder);

  RunSummary summary;
  summary.run_id = info.run_id;
  summary.loads = recorder.loads();
  summary.crashes = ending->crashes;
  summary.cancelled = ending->cancelled;
  summary.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  if (resumption) {
    summary.outcomes = all_outcomes(*resumption, *plan);
    summary.loads += resumption->record.summary.loads;
    summary.crashes += resumption->record.summary.crashes;
    summary.seconds += resumption->record.summary.seconds;
  } else {
    for (PlannedCase& planned : plan->cases) summary.outcomes.push_back(std::move(planned.outcome));
  }
  recorder.note(finished_event(summary, options.strict));
  const Status flushed = recorder.flush();
  observer.run_finished(summary);
  if (!recorder.journal_status().ok()) return recorder.journal_status();
  if (!flushed.ok()) return flushed;
  return summary;
}

}  // namespace assay::run
