#include <unistd.h>

#include <filesystem>
#include <iostream>

#include "core/golden/text.h"
#include "core/run/merge.h"
#include "tools/assay/command.h"
#include "tools/assay/report_run.h"
#include "tools/assay/run_reporter.h"
#include "tools/assay/version.h"

namespace assay::cli {

namespace po = boost::program_options;

int merge_command(const Words& words) {
  constexpr const char* kUsage = "assay merge RUN... --output DIR [options]";
  po::options_description description("options");
  description.add_options()("run", po::value<Words>(), "output folders of the shards of a run, or of any runs")(
      "output", po::value<std::string>(), "folder for the one run: new, or of an earlier merge")(
      "allow-duplicates", "a case may be in several runs; the worst verdict stays")(
      "allow-different", "the runs may be of different versions, options, environments, platforms")(
      "copy", "copy the folders of cases (default: link to them)")("junit", po::value<std::string>()->default_value(""),
                                                                   "JUnit file, besides OUTPUT/junit.xml")(
      "tap", po::value<std::string>()->default_value(""), "TAP file")(
      "github-summary", po::value<std::string>(), "step summary to append to (default: $GITHUB_STEP_SUMMARY)")(
      "history", po::value<std::string>()->default_value(""), "folder of earlier runs (default: where OUTPUT lies)")(
      "quiet", "no line for passing cases")("json", "print the outcomes as one JSON array, and nothing else")(
      "color", po::value<std::string>()->default_value("auto"), "auto, always or never");
  po::variables_map values;
  if (const auto code = parse(kUsage, description, "run", words, &values)) return *code;
  const std::optional<bool> colour = wants_colour(values["color"].as<std::string>());
  if (!colour) return fail(invalid("--color: expected auto, always or never"));
  const Words runs = all(values, "run");
  if (runs.empty()) return refuse(kUsage, "merge: no RUN given");
  if (values.count("output") == 0) return fail(invalid("merge: --output DIR is missing; it is never one of the runs"));
  ReportTargets targets{.json = values.count("json") != 0,
                        .junit = values["junit"].as<std::string>(),
                        .tap = values["tap"].as<std::string>(),
                        .github = environment()["GITHUB_STEP_SUMMARY"],
                        .history = values["history"].as<std::string>()};
  if (values.count("github-summary") != 0) targets.github = values["github-summary"].as<std::string>();
  if (Status status = check_history(targets.history); !status.ok()) return fail(status);

  std::error_code code;
  run::MergeOptions options;
  for (const std::string& folder : runs) options.runs.emplace_back(folder);
  options.output = std::filesystem::absolute(values["output"].as<std::string>(), code).lexically_normal();
  if (!options.output.has_filename()) options.output = options.output.parent_path();
  options.allow_duplicates = values.count("allow-duplicates") != 0;
  options.allow_different = values.count("allow-different") != 0;
  options.copy = values.count("copy") != 0;
  options.assay_version = kVersion;
  options.command = {"assay", "merge"};
  options.command.insert(options.command.end(), words.begin(), words.end());
  Result<run::Merged> merged = run::merge_runs(options);
  if (!merged) return fail(merged.status());

  run::RunRecord& record = merged->record;
  const run::RunSummary summary = std::move(record.summary);
  record.info.started = record.started;
  const bool strict = record.strict;
  if (!targets.json) {
    for (const std::string& note : merged->notes) std::cout << text::printable(note) << "\n";
  }
  RunReporter reporter(std::cout,
                       {.colour = *colour,
                        .terminal = !targets.json && isatty(STDOUT_FILENO) == 1,
                        .strict = strict,
                        .quiet = values.count("quiet") != 0},
                       targets, record);
  reporter.run_started(record.info);
  for (const run::CaseOutcome& outcome : summary.outcomes) reporter.case_finished(outcome);
  reporter.run_finished(summary);
  if (!reporter.status().ok()) {
    std::cerr << "assay: " << reporter.status().message() << "\n";
    return exit_code(summary.verdicts(), strict) == kExitFailed ? kExitFailed : kExitInfra;
  }
  return exit_code(summary.verdicts(), strict);
}

}  // namespace assay::cli
