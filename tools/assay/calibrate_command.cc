#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <iostream>
#include <nlohmann/json.hpp>

#include "core/golden/date.h"
#include "core/govern/calibrate.h"
#include "core/govern/drift.h"
#include "core/run/run.h"
#include "core/run/secrets.h"
#include "tools/assay/command.h"
#include "tools/assay/golden_options.h"
#include "tools/assay/run_options.h"

namespace assay::cli {

namespace po = boost::program_options;

namespace {

constexpr int kDefaultRepeats = 5;
constexpr uint64_t kLargestBatch = 100'000;

// "1,2,4" ascending; empty: the case's own.
Result<std::vector<uint64_t>> parse_batches(const std::string& list) {
  std::vector<uint64_t> batches;
  for (size_t at = 0; at < list.size();) {
    const size_t end = std::min(list.find(',', at), list.size());
    uint64_t batch = 0;
    const auto [stop, error] = std::from_chars(list.data() + at, list.data() + end, batch);
    if (error != std::errc() || stop != list.data() + end || batch < 1 || batch > kLargestBatch) {
      return invalid("--batch '" + list + "': expected numbers like 1,2,4");
    }
    batches.push_back(batch);
    at = end + 1;
  }
  std::sort(batches.begin(), batches.end());
  batches.erase(std::unique(batches.begin(), batches.end()), batches.end());
  return batches;
}

// The engine options with this many requests a batch.
std::string with_batch(const std::string& engine_options, uint64_t batch) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  if (!engine_options.empty()) json = nlohmann::ordered_json::parse(engine_options);
  json["max_requests"] = batch;
  return json.dump();
}

// Runs the case in one shape and adds its repeats. The outcome is that of the run.
Result<run::CaseOutcome> run_shape(const run::RunOptions& options, std::vector<govern::CalibrationRun>& runs) {
  SilentObserver observer;
  auto summary = run::run(options, observer);
  if (!summary) return summary.status();
  if (summary->outcomes.size() != 1) return invalid("calibrate: the filter selects no case");
  run::CaseOutcome outcome = std::move(summary->outcomes.front());
  std::vector<std::string> files;
  for (const run::Repeat& repeat : outcome.repeats) files.push_back(repeat.actual);
  if (files.empty()) files.push_back(outcome.actual);
  const Verdict verdict = outcome.verdict.verdict;
  const bool dead = verdict == Verdict::kCrashed || verdict == Verdict::kInfra;
  if (dead || std::count(files.begin(), files.end(), "") > 0) {
    const std::string message = fmt::format("{}: {}: {}", outcome.name, to_string(verdict), outcome.verdict.reason);
    return verdict == Verdict::kInfra ? infra(message) : invalid(message);
  }
  for (const std::string& file : files) {
    auto results = read_results(file);
    if (!results) return results.status();
    runs.push_back({fmt::format("batch {}", outcome.summary.batch), *std::move(results)});
  }
  return outcome;
}

// The case in every shape, smallest batch first: the first run tells how many requests there are.
Result<run::CaseOutcome> run_shapes(const run::RunOptions& options, const std::vector<uint64_t>& batches,
                                    std::vector<govern::CalibrationRun>& runs) {
  if (batches.empty()) return run_shape(options, runs);
  std::optional<run::CaseOutcome> first;
  for (const uint64_t batch : batches) {
    if (first && batch > first->summary.requests) {
      std::cout << fmt::format("batch {} is left out: the case has {} requests\n", batch, first->summary.requests);
      continue;
    }
    run::RunOptions shaped = options;
    shaped.engine_options = with_batch(options.engine_options, batch);
    shaped.output = options.output / fmt::format("batch_{}", batch);
    auto outcome = run_shape(shaped, runs);
    if (!outcome) return outcome.status();
    if (!first) first = *std::move(outcome);
  }
  return *std::move(first);
}

// What the golden, if there is one, would need for the first run to pass.
void print_against_golden(const run::CaseOutcome& outcome) {
  if (outcome.verdict.golden.empty()) return;
  std::cout << fmt::format("against {}: {}\n", outcome.verdict.golden, to_string(outcome.verdict.verdict));
  for (const MetricVerdict& metric : outcome.verdict.metrics) {
    double smallest = 0;
    for (const Finding& finding : metric.findings) smallest = std::max(smallest, finding.smallest_passing_tolerance);
    if (smallest > 0)
      std::cout << fmt::format("  {}: {:.6g} is the smallest tolerance that passes\n", metric.metric, smallest);
  }
}

int write(const po::variables_map& values, const run::RunOptions& options, const run::CaseOutcome& outcome,
          const NoiseModel& noise) {
  govern::Recording recording;
  recording.test = &options.cases.front();
  recording.environment = options.environment_name;
  recording.platform = options.platform.empty() ? outcome.summary.platform : options.platform;
  recording.info.recorded_at = utc_now();
  recording.info.run_id = outcome.provenance ? outcome.provenance->run_id : "";
  const Words command = run::secrets_of(options, {}).words(options.command);
  recording.info.command = fmt::format("{}", fmt::join(command, " "));
  recording.pending_dir = values["pending-dir"].as<std::string>();
  const auto path = govern::write_noise(recording, noise);
  if (!path) return fail(path.status());
  std::cout << "noise is in " << *path
            << "; 'assay accept CASE --metric noise --reason TEXT' lets it into the golden\n";
  return kExitOk;
}

}  // namespace

int calibrate_command(const Words& words) {
  po::options_description description("options");
  add_run_options(&description);
  description.add_options()("batch", po::value<std::string>()->default_value(""),
                            "batch sizes to compare, e.g. 1,2,4 (default: the case's own)")(
      "write", "put the noise into a pending golden")("pending-dir", po::value<std::string>()->default_value(""),
                                                      "folder of pending goldens (default: beside the goldens)");
  po::variables_map values;
  if (const auto code = parse("assay calibrate CASE [--repeat N] [options]", description, "path", words, &values)) {
    return *code;
  }
  const bool writes = values.count("write") != 0;
  if (writes) {
    if (const auto code = refuse_in_ci("calibrate --write")) return *code;
  }
  const auto batches = parse_batches(values["batch"].as<std::string>());
  if (!batches) return fail(batches.status());
  Words command = {"assay", "calibrate"};
  command.insert(command.end(), words.begin(), words.end());
  auto options = make_run_options(values, command);
  if (!options) return fail(options.status());
  if (options->cases.size() != 1) {
    return fail(invalid(fmt::format("calibrate measures one case; these paths hold {}", options->cases.size())));
  }
  if (Status has = govern::check_has_golden(options->cases.front()); !has.ok()) return fail(has);
  if (options->repeat == 0) options->repeat = kDefaultRepeats;
  std::vector<govern::CalibrationRun> runs;
  const auto outcome = run_shapes(*options, *batches, runs);
  if (!outcome) {
    const int code = fail(outcome.status());
    return code == kExitInfra ? code : kExitFailed;
  }
  auto calibration = govern::calibrate(runs);
  if (!calibration) return fail(calibration.status());
  calibration->noise.measured_at = utc_now();
  calibration->noise.device = outcome->summary.device;
  std::cout << fmt::format("{} on {} ({})\n", outcome->name, outcome->summary.backend, outcome->summary.device)
            << govern::calibration_text(*calibration);
  print_against_golden(*outcome);
  return writes ? write(values, *options, *outcome, calibration->noise) : kExitOk;
}

}  // namespace assay::cli
