#include <unistd.h>

#include <iostream>

#include "core/run/durations.h"
#include "core/run/run.h"
#include "core/run/secrets.h"
#include "core/run/shards.h"
#include "tools/assay/command.h"
#include "tools/assay/report_run.h"
#include "tools/assay/resume_options.h"
#include "tools/assay/run_options.h"
#include "tools/assay/run_reporter.h"

namespace assay::cli {

namespace po = boost::program_options;

void add_report_options(po::options_description* options) {
  options->add_options()("junit", po::value<std::string>()->default_value(""), "JUnit file, besides OUTPUT/junit.xml")(
      "tap", po::value<std::string>()->default_value(""), "TAP file")(
      "github-summary", po::value<std::string>(), "step summary to append to (default: $GITHUB_STEP_SUMMARY)")(
      "history", po::value<std::string>()->default_value(""), "folder of earlier runs (default: where OUTPUT lies)")(
      "compat", po::value<std::string>(), "megatron: tell the verdict of Megatron-LM's comparator beside ours")(
      "strict", "EQUIVALENT does not pass")("quiet", "no line for passing cases")(
      "json", "print the outcomes as one JSON array, and nothing else")(
      "color", po::value<std::string>()->default_value("auto"), "auto, always or never");
}

namespace {

constexpr unsigned kHelpColumns = 100;  // in fewer, the help would need more lines than a screen has

// --rerun of a resumed run, --shard and --durations of any other.
Status take_parts(const po::variables_map& values, run::RunOptions* options) {
  if (options->resume) {
    if (values.count("rerun") == 0) return {};
    Result<std::vector<Verdict>> rerun = parse_rerun(values["rerun"].as<std::string>(), options->strict);
    if (!rerun) return rerun.status();
    options->rerun = *std::move(rerun);
    return {};
  }
  if (values.count("shard") == 0) return {};
  Result<run::ShardOptions> shard = run::parse_shard(values["shard"].as<std::string>());
  if (!shard) return shard.status();
  for (const std::string& path : all(values, "durations")) {
    Result<run::Durations> durations = run::read_durations(path);
    if (!durations) return durations.status().with("--durations");
    for (auto& [name, duration] : durations->cases) shard->durations.cases.insert_or_assign(name, duration);
  }
  options->shard = *std::move(shard);
  return {};
}

}  // namespace

int run_command(const Words& words) {
  po::options_description description("options", kHelpColumns);
  add_run_options(&description);
  add_report_options(&description);
  description.add_options()("metamorphic", "judge all cases by relations, not by goldens")(
      "shard", po::value<std::string>(), "i/n: part i of n of the cases")(
      "durations", po::value<Words>(), "for --shard: earlier run that tells how long cases take")(
      "resume", po::value<std::string>(), "go on with the run of this output folder")(
      "rerun", po::value<std::string>(), "with --resume: verdicts to run again, or failed");
  po::variables_map values;
  if (const auto code = parse("assay run [PATH]... [options]", description, "path", words, &values)) return *code;
  const bool resume = values.count("resume") != 0;
  if (values.count("rerun") != 0 && !resume) return fail(invalid("--rerun: only with --resume RUN"));
  if (values.count("durations") != 0 && values.count("shard") == 0 && !resume) {
    return fail(invalid("--durations: only with --shard i/n"));
  }
  if (resume) {
    Result<po::variables_map> resumed = resume_values(description, std::move(values));
    if (!resumed) return fail(resumed.status());
    values = *std::move(resumed);
  }
  Words command = {"assay", "run"};
  command.insert(command.end(), words.begin(), words.end());
  auto options = make_run_options(values, command);
  if (!options) return fail(options.status());
  options->metamorphic = values.count("metamorphic") != 0;
  options->resume = resume;
  if (Status taken = take_parts(values, &*options); !taken.ok()) return fail(taken);
  return run_and_report(values, *std::move(options));
}

int run_and_report(const po::variables_map& values, run::RunOptions options) {
  if (const Status known = check_compat(values); !known.ok()) return fail(known);
  options.compat = values.count("compat") != 0;
  const std::optional<bool> colour = wants_colour(values["color"].as<std::string>());
  if (!colour) return fail(invalid("--color: expected auto, always or never"));
  ReportTargets targets{.json = values.count("json") != 0,
                        .junit = values["junit"].as<std::string>(),
                        .tap = values["tap"].as<std::string>(),
                        .github = environment()["GITHUB_STEP_SUMMARY"],
                        .history = values["history"].as<std::string>()};
  if (values.count("github-summary") != 0) targets.github = values["github-summary"].as<std::string>();
  if (Status status = check_history(targets.history); !status.ok()) return fail(status);
  run::RunRecord about;
  about.command = run::secrets_of(options, {}).words(options.command);
  about.environment = options.environment_name;
  about.strict = options.strict;
  const bool json = targets.json;
  RunReporter reporter(std::cout,
                       {.colour = *colour,
                        .terminal = !json && isatty(STDOUT_FILENO) == 1,
                        .strict = options.strict,
                        .quiet = values.count("quiet") != 0},
                       targets, about);
  const auto summary = run::run(options, reporter);
  if (const auto broken = broken_run(summary, reporter, options.strict)) return *broken;
  const run::ShardInfo& shard = reporter.info().shard;
  if (shard.index > 0 && shard.cases > 0 && shard.cases_here == 0) return kExitOk;  // fewer cases than shards
  return exit_code(summary->verdicts(), options.strict);
}

}  // namespace assay::cli
