#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <iostream>
#include <map>

#include "core/discover/discover.h"
#include "core/discover/list.h"
#include "core/golden/date.h"
#include "core/golden/text.h"
#include "core/govern/record.h"
#include "core/run/filter.h"
#include "core/run/read_run.h"
#include "core/run/run.h"
#include "core/run/secrets.h"
#include "tools/assay/command.h"
#include "tools/assay/golden_options.h"
#include "tools/assay/run_options.h"

namespace assay::cli {

namespace po = boost::program_options;
namespace fs = std::filesystem;

namespace {

// A run whose results may be recorded.
struct Source {
  std::string run_id;
  std::string environment;
  std::string platform;  // asked for; empty: the backend's
  std::vector<run::CaseOutcome> outcomes;
  std::map<std::string, TestCase> cases;  // by folder
  size_t without_golden = 0;              // cases and rows that relations judge, each with a line of its own
};

std::string real_path(const std::string& path) {
  std::error_code error;
  const fs::path real = fs::weakly_canonical(path, error);
  return error ? path : real.string();
}

Result<std::map<std::string, TestCase>> cases_by_folder(const Words& paths) {
  auto cases = discover::discover(paths);
  if (!cases) return cases.status();
  std::map<std::string, TestCase> by_folder;
  for (TestCase& test : *cases) by_folder.emplace(real_path(test.dir), std::move(test));
  return by_folder;
}

// Takes cases that relations judge out of the run, with a line for each that the filter selects.
Result<size_t> leave_out_relations(run::RunOptions* options) {
  const auto filter = run::Filter::parse(options->filter);
  if (!filter) return filter.status();
  size_t left_out = 0;
  std::erase_if(options->cases, [&](const TestCase& test) {
    const Status has = govern::check_has_golden(test);
    if (has.ok()) return false;
    if (!filter->matches({.name = test.name,
                          .model = test.model,
                          .engine = options->engine.empty() ? discover::engine_of(test) : options->engine,
                          .metrics = test.metrics.value_or(Words()),
                          .tags = test.assay.tags})) {
      return true;
    }
    ++left_out;
    std::cout << fmt::format("{}: nothing to record: {}\n\n", text::printable(test.name),
                             text::printable(has.message()));
    return true;
  });
  return left_out;
}

Result<Source> run_now(const po::variables_map& values, const Words& words) {
  Words command = {"assay", "record"};
  command.insert(command.end(), words.begin(), words.end());
  auto options = make_run_options(values, command);
  if (!options) return options.status();
  options->digest_weights = true;
  Source source;
  const auto left_out = leave_out_relations(&*options);
  if (!left_out) return left_out.status();
  source.without_golden = *left_out;
  for (const TestCase& test : options->cases) source.cases.emplace(real_path(test.dir), test);
  if (source.without_golden > 0 && options->cases.empty()) return source;
  SilentObserver observer;
  auto summary = run::run(*options, observer);
  if (!summary) return summary.status();
  source.run_id = summary->run_id;
  source.environment = options->environment_name;
  source.platform = options->platform;
  source.outcomes = std::move(summary->outcomes);
  return source;
}

// Takes an earlier run's results; with PATHs, of the cases below them alone.
Result<Source> run_of_folder(const std::string& folder, const po::variables_map& values) {
  auto record = run::read_run(folder);
  if (!record) return record.status();
  Source source;
  source.run_id = record->summary.run_id;
  source.environment =
      values["environment"].defaulted() ? record->environment : values["environment"].as<std::string>();
  source.platform = values["platform"].defaulted() ? record->platform : values["platform"].as<std::string>();
  Words paths = all(values, "path");
  const bool some = !paths.empty();
  for (const run::CaseOutcome& outcome : record->summary.outcomes) {
    if (!some) paths.push_back(outcome.path);
  }
  auto cases = cases_by_folder(paths);
  if (!cases) return cases.status();
  source.cases = *std::move(cases);
  for (run::CaseOutcome& outcome : record->summary.outcomes) {
    const auto test = source.cases.find(real_path(outcome.path));
    if (test == source.cases.end()) continue;
    if (outcome.relation.empty() && !test->second.assay.metamorphic) {
      source.outcomes.push_back(std::move(outcome));
      continue;
    }
    ++source.without_golden;
    std::cout << fmt::format("{}: nothing to record: it was judged by a relation, which has no golden\n\n",
                             text::printable(outcome.name));
  }
  return source;
}

// Why the results of a case cannot become a golden; empty: they can.
std::string unfit(const run::CaseOutcome& outcome, const ResultSet* results) {
  const Verdict verdict = outcome.verdict.judged.value_or(outcome.verdict.verdict);
  const bool no_results = results == nullptr || verdict == Verdict::kCrashed || verdict == Verdict::kInfra;
  if (no_results || verdict == Verdict::kFlaky) {  // one that ran and was not to be compared has results
    return fmt::format("{}: {}", to_string(verdict), outcome.verdict.reason);
  }
  if (results->requests.size() < outcome.summary.requests) {
    return fmt::format("only {} of {} requests finished: {}", results->requests.size(), outcome.summary.requests,
                       outcome.verdict.reason);
  }
  return {};
}

enum class Done { kRecorded, kEqual, kRefused, kInfra };

Done refuse(const run::CaseOutcome& outcome, const std::string& reason, bool infrastructure) {
  std::cout << fmt::format("{}: not recorded: {}\n\n", outcome.name, reason);
  return infrastructure ? Done::kInfra : Done::kRefused;
}

struct Wish {
  std::string command;
  std::string pending_dir;
};

// What was called, for the golden's provenance: nothing secret goes into a golden.
std::string command_text(const po::variables_map& values, const Words& words) {
  run::RunOptions given;
  given.environment = environment();
  if (auto settings = parse_settings(all(values, "set"))) given.variables = *std::move(settings);
  given.engine_options = values["engine-options"].as<std::string>();
  given.backend_options = values["backend-options"].as<std::string>();
  given.launcher_options = values["launcher-options"].as<std::string>();
  return fmt::format("assay record {}", fmt::join(run::secrets_of(given, {}).words(words), " "));
}

Done record_case(const Source& source, const run::CaseOutcome& outcome, const Wish& wish,
                 const compare::ComparatorLookup& lookup) {
  const auto results =
      outcome.actual.empty() ? Result<ResultSet>(not_found("no results")) : read_results(outcome.actual);
  const std::string reason = unfit(outcome, results ? &*results : nullptr);
  if (!reason.empty()) return refuse(outcome, reason, outcome.verdict.verdict == Verdict::kInfra);
  govern::Recording recording;
  recording.test = &source.cases.at(real_path(outcome.path));
  recording.environment = source.environment;
  recording.platform = source.platform.empty() ? outcome.summary.platform : source.platform;
  if (recording.platform.empty()) return refuse(outcome, "no platform is known: name it with --platform", false);
  recording.results = *results;
  recording.provenance = outcome.provenance.value_or(Provenance());
  if (recording.provenance.run_id.empty()) recording.provenance.run_id = source.run_id;
  recording.info = {.recorded_at = utc_now(), .run_id = source.run_id, .command = wish.command, .golden_sha256 = ""};
  recording.pending_dir = wish.pending_dir;
  const auto recorded = govern::record(recording, lookup);
  if (!recorded) return refuse(outcome, recorded.status().message(), recorded.status().code() == StatusCode::kInfra);
  if (recorded->pending.empty()) {
    std::cout << fmt::format("{}: says what {} says; nothing to record\n\n", outcome.name, recorded->compared);
    return Done::kEqual;
  }
  auto pending = read_pending(recorded->pending, recording.test->dir);
  if (!pending) return refuse(outcome, pending.status().message(), true);
  const govern::PendingItem item{.test = *recording.test,
                                 .pending = *std::move(pending),
                                 .drift = recorded->drift,
                                 .first = !recorded->judges,
                                 .stale = "",
                                 .error = {}};
  std::cout << govern::item_text(item, false) << "\n";
  return Done::kRecorded;
}

// Two cases that would share one folder below --pending-dir.
Status check_mirrors(const Source& source, const std::string& pending_dir) {
  if (pending_dir.empty()) return {};
  std::map<std::string, std::string> taken;
  for (const auto& [folder, test] : source.cases) {
    const auto [at, fresh] = taken.emplace(govern::pending_folder(test.dir, pending_dir), test.dir);
    if (!fresh) return invalid(fmt::format("{} and {} share {}; record them apart", at->second, test.dir, at->first));
  }
  return {};
}

}  // namespace

int record_command(const Words& words) {
  po::options_description description("options");
  add_run_options(&description);
  description.add_options()("run", po::value<std::string>()->default_value(""),
                            "take the results of this run's output folder instead of running")(
      "pending-dir", po::value<std::string>()->default_value(""),
      "folder of pending goldens, for trees that cannot be written (default: beside the goldens)");
  po::variables_map values;
  if (const auto code = parse("assay record PATH... [options]", description, "path", words, &values)) return *code;
  if (const auto code = refuse_in_ci("record")) return *code;
  const std::string folder = values["run"].as<std::string>();
  const auto source = folder.empty() ? run_now(values, words) : run_of_folder(folder, values);
  if (!source) return fail(source.status());
  const Wish wish{.command = command_text(values, words), .pending_dir = values["pending-dir"].as<std::string>()};
  if (Status status = check_mirrors(*source, wish.pending_dir); !status.ok()) return fail(status);
  if (source->outcomes.empty() && source->without_golden > 0) return kExitFailed;
  if (source->outcomes.empty()) {
    std::cerr << "assay: record: no case was selected\n";
    return kExitNothingRan;
  }
  plugin::PluginRegistry registry(search_options(values));
  const compare::ComparatorLookup lookup = comparators_of(registry);
  std::map<Done, size_t> counts;
  for (const run::CaseOutcome& outcome : source->outcomes) ++counts[record_case(*source, outcome, wish, lookup)];
  std::cout << fmt::format("{} recorded, {} equal to their goldens, {} not recorded\n", counts[Done::kRecorded],
                           counts[Done::kEqual], counts[Done::kRefused] + counts[Done::kInfra]);
  if (counts[Done::kRecorded] > 0) std::cout << "'assay review' goes through what is pending\n";
  return counts[Done::kRefused] > 0 ? kExitFailed : counts[Done::kInfra] > 0 ? kExitInfra : kExitOk;
}

}  // namespace assay::cli
