#include "core/run/run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <ctime>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "core/plugin/registry.h"
#include "core/run/events.h"
#include "core/run/journal.h"
#include "core/run/launch_options.h"
#include "core/run/launched_supervisor.h"
#include "core/run/launcher.h"
#include "core/run/leash.h"
#include "core/run/plan.h"
#include "core/run/recorder.h"
#include "core/run/repeats.h"
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

Json header(const RunOptions& options, const RunInfo& info) {
  Json json = make_event(event::kRunStarted);
  json["schema"] = kEventSchema;
  json["run_id"] = info.run_id;
  json["command"] = options.command;
  json["options"] = {{"variables", options.variables},
                     {"engine", options.engine},
                     {"backend", options.backend},
                     {"backend_options", options.backend_options},
                     {"filter", options.filter},
                     {"jobs", options.jobs},
                     {"launcher", options.launcher},
                     {"repeat", options.repeat},
                     {"metamorphic", options.metamorphic},
                     {"strict", options.strict},
                     {"allow_scripts", options.allow_scripts}};
  json["environment"] = options.environment_name;
  json["platform"] = options.platform;
  json["cases"] = info.cases;
  json["filtered"] = info.filtered;
  json["groups"] = info.groups;
  return json;
}

Json planned_event(const PlannedCase& planned) {
  Json json = make_event(event::kCasePlanned);
  json["case"] = planned.order.id;
  json["name"] = planned.outcome.name;
  json["path"] = planned.outcome.path;
  json["model"] = planned.outcome.model;
  json["metrics"] = planned.outcome.metrics;
  if (!planned.outcome.relation.empty()) json["relation"] = planned.outcome.relation;
  json["reproduce"] = planned.outcome.reproduce;
  return json;
}

Json footer(const RunOptions& options, const RunSummary& summary) {
  Json json = make_event(event::kRunFinished);
  std::map<std::string, int> counts;
  for (const Verdict verdict : summary.verdicts()) ++counts[std::string(to_string(verdict))];
  json["seconds"] = summary.seconds;
  json["counts"] = counts;
  json["exit_code"] = exit_code(summary.verdicts(), options.strict);
  json["loads"] = summary.loads;
  json["crashes"] = summary.crashes;
  json["cancelled"] = summary.cancelled;
  json["unused_waivers"] = Json::array();  // of cases that pass without them
  for (const CaseOutcome& outcome : summary.outcomes) {
    if (has_unused_waiver(outcome.verdict)) json["unused_waivers"].push_back(outcome.name);
  }
  return json;
}

// A launcher that is open.
struct Launched {
  std::string run_id;
  LaunchOptions options;
  Launcher launcher;
};

Result<std::unique_ptr<Launched>> open_launcher(const RunOptions& options, const std::string& run_id,
                                                plugin::PluginRegistry& registry) {
  Result<LaunchOptions> launch = parse_launch_options(options.launcher_options);
  if (!launch) return launch.status();
  const Result<const plugin::Plugin*> plugin = registry.find(plugin::Kind::kLauncher, options.launcher);
  if (!plugin) return invalid("--launcher: " + plugin.status().message());
  const std::filesystem::path folder = options.output / "launcher";
  std::error_code code;
  std::filesystem::create_directories(folder, code);
  std::filesystem::permissions(folder, std::filesystem::perms::owner_all, code);  // environments hold secrets
  if (code) return infra(fmt::format("{}: {}; choose another --output", folder.string(), code.message()));
  Result<Launcher> launcher = Launcher::open(**plugin, launch->plugin, folder, run_id);
  if (!launcher) return launcher.status();
  return std::make_unique<Launched>(Launched{run_id, *std::move(launch), *std::move(launcher)});
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
      Heartbeat::start(options.output / "workers" / "heartbeat", launched.run_id, interval);
  if (!heart) return heart.status();
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
  Result<Plan> plan = make_plan(options, registry);
  if (!plan) return plan.status();
  Result<Journal> journal = Journal::open(options.output);
  if (!journal) return journal.status();

  const RunInfo info{.run_id = make_run_id(),
                     .output = options.output,
                     .cases = plan->cases.size(),
                     .filtered = plan->filtered,
                     .groups = plan->groups.size(),
                     .jobs = options.jobs};
  std::unique_ptr<Launched> launched;
  if (!options.launcher.empty()) {
    Result<std::unique_ptr<Launched>> opened = open_launcher(options, info.run_id, registry);
    if (!opened) return opened.status();
    launched = *std::move(opened);
  }
  for (Group& group : plan->groups) group.head.run_id = info.run_id;
  Recorder recorder(*plan, *journal, observer);
  recorder.note(header(options, info));
  for (const PlannedCase& planned : plan->cases) recorder.note(planned_event(planned));
  observer.run_started(info);
  for (size_t i = 0; i < plan->cases.size(); ++i) {
    if (plan->cases[i].settled) recorder.finish(i, CaseVerdict(plan->cases[i].outcome.verdict));
  }
  for (const PlannedCase& planned : plan->cases) {  // a result of an earlier run must not be taken for this one's
    const std::filesystem::path folder = folder_of_repeat(options.output, planned.order.id, 1);
    std::filesystem::remove(folder / "actual.json", code);
    std::filesystem::remove(folder / "reference.json", code);
    std::filesystem::remove_all(folder / kResavedFolder, code);
    for (int repeat = 2;; ++repeat) {
      if (std::filesystem::remove_all(folder_of_repeat(options.output, planned.order.id, repeat), code) == 0) break;
    }
  }
  const Result<Ending> ending = options.launcher.empty() ? supervise_here(options, *plan, recorder)
                                                         : supervise_launched(options, *plan, recorder, *launched);
  if (!ending) return ending.status();

  RunSummary summary;
  summary.run_id = info.run_id;
  for (PlannedCase& planned : plan->cases) summary.outcomes.push_back(std::move(planned.outcome));
  summary.loads = recorder.loads();
  summary.crashes = ending->crashes;
  summary.cancelled = ending->cancelled;
  summary.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  recorder.note(footer(options, summary));
  const Status flushed = recorder.flush();
  observer.run_finished(summary);
  if (!recorder.journal_status().ok()) return recorder.journal_status();
  if (!flushed.ok()) return flushed;
  return summary;
}

}  // namespace assay::run
