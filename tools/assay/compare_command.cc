#include <filesystem>
#include <iostream>

#include "core/compare/judge.h"
#include "core/compare/render.h"
#include "core/discover/case_reader.h"
#include "core/discover/yaml_tree.h"
#include "core/golden/date.h"
#include "core/golden/golden_name.h"
#include "core/govern/drift.h"
#include "core/plugin/registry.h"
#include "core/run/compat.h"
#include "core/run/waive.h"
#include "core/train/compare_files.h"
#include "tools/assay/command.h"
#include "tools/assay/golden_options.h"

namespace assay::cli {

namespace po = boost::program_options;

namespace {

// Waivers of the case.
void declare(const TestCase& test_case, const std::string& golden_file, CaseVerdict* verdict) {
  const GoldenName golden =
      parse_golden_name(std::filesystem::path(golden_file).filename().string()).value_or(GoldenName{});
  run::apply_declarations(
      run::declarations_of(test_case),
      {.today = utc_today(), .platform = golden.platform, .environment = golden.environment, .engine_failed = false},
      verdict);
}

CaseVerdict judge(const TestCase& test_case, const Words& files, const po::variables_map& values) {
  const auto refused = [&](const Status& status) {
    return CaseVerdict{.verdict = Verdict::kInvalid, .reason = status.message(), .golden = files[0], .metrics = {}};
  };
  if (!test_case.error.ok()) return refused(test_case.error);
  plugin::PluginRegistry registry(search_options(values));
  const auto options = govern::judge_options(test_case, comparators_of(registry));
  if (!options) return refused(options.status());
  CaseVerdict verdict = compare::compare_files(files[0], files[1], *options);
  declare(test_case, files[0], &verdict);
  return verdict;
}

// Of MODE pretraining and rl.
CaseVerdict judge_training(const TestCase& test_case, const Words& files) {
  if (!test_case.error.ok()) return {Verdict::kInvalid, test_case.error.message(), files[0], {}};
  train::ComparedFiles compared = train::compare_files(test_case, files[0], files[1]);
  declare(test_case, files[0], &compared.verdict);
  compared.verdict.compat = compared.compat;
  return compared.verdict;
}

}  // namespace

int compare_command(const Words& words) {
  constexpr const char* kUsage = "assay compare GOLDEN ACTUAL --config model_config.yaml [options]";
  std::string config;
  po::options_description options("options");
  options.add_options()("file", po::value<Words>(), "the golden file, then the results file")(
      "config", po::value(&config)->required(),
      "model_config.yaml: its METRICS and ASSAY block, waivers included, are used")(
      "plugin-path", po::value<Words>(), "folder to look for comparators in first; repeatable")(
      "compat", po::value<std::string>(), "megatron: tell the verdict of Megatron-LM's comparator beside ours")(
      "strict", "EQUIVALENT does not pass")("json", "print the verdict as one JSON object");
  po::variables_map values;
  if (const auto code = parse(kUsage, options, "file", words, &values)) return *code;
  if (const Status known = check_compat(values); !known.ok()) return fail(known);
  const Words files = all(values, "file");
  if (files.size() != 2) {
    return refuse(kUsage, "compare: " + std::to_string(files.size()) + " files given, expected GOLDEN and ACTUAL");
  }
  auto text = discover::read_file(config, discover::YamlLimits{}.bytes);
  if (!text) return fail(text.status());
  TestCase test_case;
  test_case.config = config;
  test_case.dir = std::filesystem::path(config).parent_path().string();
  discover::read_config(*std::move(text), test_case, /*needs_model_args=*/false);
  const bool training = train::compares_training(test_case, files[0]);
  CaseVerdict verdict = training ? judge_training(test_case, files) : judge(test_case, files, values);
  if (values.count("compat") == 0) verdict.compat.reset();
  if (values.count("compat") != 0 && !training) {
    verdict.compat = run::judge_compat_files(files[0], files[1], test_case.written_metrics,
                                             environment()["ENABLE_LIGHTWEIGHT_MODE"] == "true");
  }
  std::cout << (values.count("json") != 0 ? compare::verdict_json(verdict) + "\n"
                                          : compare::render_verdict_text(verdict));
  return exit_code({verdict.verdict}, values.count("strict") != 0);
}

}  // namespace assay::cli
