#include <chrono>
#include <filesystem>
#include <iostream>

#include "core/discover/discover.h"
#include "core/plugin/registry.h"
#include "tools/assay/command.h"
#include "tools/assay/run_options.h"
#include "tools/self_test/campaign.h"
#include "tools/self_test/kill_table.h"

namespace assay::cli {

namespace po = boost::program_options;
namespace fs = std::filesystem;

namespace {

constexpr const char* kSelfTestUsage = "assay self-test [options]";
constexpr const char* kBase = "testcases/moe/moe_10m_licences_self_test";
constexpr const char* kKnown = "testcases/moe/moe_10m_licences_fp32_b4";
constexpr int kMostSeeds = 9999;

po::options_description description() {
  po::options_description options("options");
  options.add_options()("seeds", po::value<int>()->default_value(10), "places of every fault")(
      "faults", po::value<std::string>()->default_value(""), "globs of fault names, e.g. 'stale_kv,*_logprob'")(
      "cases", po::value<Words>(), "case that is run, and one with a known completion (default: those of testcases/)")(
      "jobs", po::value<int>()->default_value(2), "workers at once")(
      "output", po::value<std::string>()->default_value(""),
      "folder for cases and runs, kept (default: a temporary one, kept if something went wrong)")(
      "plugin-path", po::value<Words>(), "folder to look for plugins in first; repeatable")(
      "json", "print one JSON object, and nothing else");
  return options;
}

Result<self_test::CampaignOptions> make_options(const po::variables_map& values) {
  self_test::CampaignOptions options;
  const int seeds = values["seeds"].as<int>();
  if (seeds < 1 || seeds > kMostSeeds) return invalid("--seeds " + std::to_string(seeds) + ": expected 1 .. 9999");
  options.seeds = static_cast<uint64_t>(seeds);
  if (values["jobs"].as<int>() < 1) return invalid("--jobs: expected 1 or more");
  Words paths = all(values, "cases");
  if (paths.empty()) paths = {kBase, kKnown};
  Result<std::vector<TestCase>> cases = discover::discover(paths);
  if (!cases) return cases.status().with("--cases");
  options.cases = *std::move(cases);
  plugin::PluginRegistry registry(search_options(values));
  const Result<const plugin::Plugin*> faulty = registry.find(plugin::Kind::kEngine, "faulty");
  if (!faulty) return faulty.status();
  Result<std::vector<self_test::FaultRow>> faults = self_test::read_faults((*faulty)->options_schema);
  if (!faults) return faults.status();
  const std::string glob = values["faults"].as<std::string>();
  for (const char* metric : self_test::kOwnMetrics) {
    if (registry.find_metric_comparator(metric).ok()) options.served.insert(metric);
  }
  for (self_test::FaultRow& fault : *faults) {
    if (registry.find_metric_comparator(fault.metric).ok()) options.served.insert(fault.metric);
    if (self_test::matches(glob, fault.name)) options.faults.push_back(std::move(fault));
  }
  if (options.faults.empty()) return invalid("--faults '" + glob + "': no fault has such a name");
  return options;
}

fs::path temporary_folder() {
  std::error_code error;
  std::string name = (fs::temp_directory_path(error) / "assay-self-test-XXXXXX").string();
  if (error) return {};
  return ::mkdtemp(name.data()) == nullptr ? fs::path() : fs::path(name);
}

}  // namespace

int self_test_command(const Words& words) {
  po::variables_map values;
  if (const auto code = parse(kSelfTestUsage, description(), "", words, &values)) return *code;
  Result<self_test::CampaignOptions> options = make_options(values);
  if (!options) return fail(options.status());
  const std::string output = values["output"].as<std::string>();
  std::error_code lost;
  const fs::path folder = output.empty() ? temporary_folder() : fs::absolute(output, lost);
  if (lost) return fail(infra("--output " + output + ": there is no path to it: " + lost.message()));
  if (folder.empty()) return fail(infra("no temporary folder can be made; name one with --output"));
  const bool json = values.count("json") != 0;
  if (!json) options->progress = [](const std::string& line) { std::cerr << line << "\n"; };
  self_test::Workshop workshop({.folder = folder,
                                .worker = fs::path(program_dir()) / "assay-worker",
                                .environment = environment(),
                                .plugins = search_options(values),
                                .jobs = values["jobs"].as<int>(),
                                .cancel = cancel_on_signals()});
  const Result<self_test::SelfTestReport> report = self_test::run_campaign(*options, workshop);
  const bool passed = report && report->passed();
  std::error_code ignored;
  if (output.empty() && passed) fs::remove_all(folder, ignored);
  if (!report) return fail(report.status());
  std::cout << (json ? table_json(*report) : table_text(*report));
  if (!json && fs::exists(folder, ignored)) std::cout << "cases and runs: " << folder.string() << "\n";
  return passed ? kExitOk : kExitFailed;
}

}  // namespace assay::cli
