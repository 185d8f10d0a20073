#include <unistd.h>

#include <iostream>

#include "core/run/run.h"
#include "core/run/secrets.h"
#include "tools/assay/command.h"
#include "tools/assay/part_options.h"
#include "tools/assay/report_run.h"
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

}  // namespace

int run_command(const Words& words) {
  po::options_description description("options", kHelpColumns);
  add_run_options(&description);
  add_report_options(&description);
  add_part_options(&description);
  po::variables_map given;
  if (const auto code = parse("assay run [PATH]... [options]", description, "path", words, &given)) return *code;
  const Result<po::variables_map> values = with_parts(description, std::move(given), {"run"});
  if (!values) return fail(values.status());
  Words command = {"assay", "run"};
  command.insert(command.end(), words.begin(), words.end());
  auto options = make_run_options(*values, command);
  if (!options) return fail(options.status());
  if (Status taken = take_parts(*values, &*options); !taken.ok()) return fail(taken);
  return run_and_report(*values, *std::move(options));
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
  const int code = exit_code(summary->verdicts(), options.strict);
  // Of a shard it says nothing that no case ran: there are fewer than shards, or its own are skipped.
  return code == kExitNothingRan && shard.index > 0 && shard.cases > 0 ? kExitOk : code;
}

}  // namespace assay::cli
