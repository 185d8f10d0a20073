#include "tools/assay/part_options.h"

#include "core/run/durations.h"
#include "core/run/shards.h"
#include "tools/assay/resume_options.h"

namespace assay::cli {

namespace po = boost::program_options;

void add_part_options(po::options_description* options) {
  options->add_options()("metamorphic", "judge all cases by relations, not by goldens")(
      "shard", po::value<std::string>(), "i/n: part i of n of the cases")(
      "durations", po::value<Words>(), "for --shard: earlier run that tells how long cases take")(
      "resume", po::value<std::string>(), "go on with the run of this output folder")(
      "rerun", po::value<std::string>(), "with --resume: verdicts to run again, or failed");
}

Result<po::variables_map> with_parts(const po::options_description& options, po::variables_map values,
                                     const Words& command) {
  if (values.count("resume") != 0) {
    Result<po::variables_map> recorded = resume_values(options, std::move(values), command);
    if (!recorded) return recorded;
    if (Status found = plugin::check_search(search_options(*recorded)); !found.ok()) return found;
    return recorded;
  }
  if (values.count("rerun") != 0) return invalid("--rerun: only with --resume RUN");
  if (values.count("durations") != 0 && values.count("shard") == 0) {
    return invalid("--durations: only with --shard i/n");
  }
  return values;
}

Status take_parts(const po::variables_map& values, run::RunOptions* options) {
  options->metamorphic = values.count("metamorphic") != 0;
  options->resume = values.count("resume") != 0;
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

}  // namespace assay::cli
