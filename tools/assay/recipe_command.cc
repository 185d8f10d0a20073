#include <fmt/format.h>

#include <algorithm>
#include <iostream>

#include "core/discover/nearest.h"
#include "core/golden/text.h"
#include "core/recipe/catalogue.h"
#include "core/recipe/list.h"
#include "tools/assay/command.h"
#include "tools/assay/part_options.h"
#include "tools/assay/recipe_run.h"
#include "tools/assay/run_options.h"

namespace assay::cli {

namespace po = boost::program_options;

namespace {

// Filters that a command's other options do not bring along are added by the command.
void add_query_options(po::options_description* options) {
  options->add_options()("scope", po::value<std::string>()->default_value(""),
                         "workloads of this scope, by either of its names")(
      "cadence", po::value<std::string>()->default_value(""), "workloads of pr, nightly, mergegroup or weekly")(
      "model", po::value<std::string>()->default_value(""), "workloads of this model")(
      "test-case", po::value<std::string>()->default_value(""), "workloads of these test cases, NAME[,NAME]...")(
      "tag", po::value<std::string>()->default_value(""), "workloads of this tag")(
      "root", po::value<std::string>()->default_value(""), "repository of the scripts (default: the recipe's)");
}

void print(const std::vector<recipe::Finding>& findings) {
  for (const recipe::Finding& finding : findings) std::cerr << recipe::to_line(finding) << "\n";
}

bool has_errors(const std::vector<recipe::Finding>& findings) {
  return std::any_of(findings.begin(), findings.end(),
                     [](const recipe::Finding& finding) { return finding.severity == recipe::Severity::kError; });
}

// Of the words that both commands have. A default of --environment is no filter.
Result<recipe::CatalogueOptions> catalogue_options(const po::variables_map& values) {
  const auto word = [&values](const char* name) {
    return values[name].defaulted() ? std::string() : values[name].as<std::string>();
  };
  recipe::CatalogueOptions options;
  options.query = {.scope = word("scope"),
                   .cadence = word("cadence"),
                   .environment = word("environment"),
                   .model = word("model"),
                   .tag = word("tag"),
                   .platform = word("platform"),
                   .test_case = word("test-case")};
  options.root = word("root");
  const std::string& cadence = options.query.cadence;
  if (!cadence.empty() &&
      std::find(recipe::kCadences.begin(), recipe::kCadences.end(), cadence) == recipe::kCadences.end()) {
    return invalid(fmt::format("--cadence '{}': expected pr, nightly, mergegroup or weekly{}", cadence,
                               discover::did_you_mean(cadence, recipe::kCadences)));
  }
  return options;
}

Result<recipe::Catalogue> read(const po::variables_map& values, const recipe::CatalogueOptions& options) {
  const Words paths = all(values, "path");
  if (paths.empty()) return invalid("recipe: name recipe files, or folders of them");
  return recipe::read_catalogue(paths, options);
}

int nothing_selected(const recipe::Catalogue& catalogue) {
  std::cerr << fmt::format("assay: no workload: {} in {} recipe{}, none of them selected\n", catalogue.expanded,
                           catalogue.files, catalogue.files == 1 ? "" : "s");
  return kExitNothingRan;
}

int list(const Words& words) {
  po::options_description description("options");
  description.add_options()("path", po::value<Words>(), "recipe files, or folders of them");
  add_query_options(&description);
  description.add_options()("environment", po::value<std::string>()->default_value(""),
                            "workloads of this environment")("platform", po::value<std::string>()->default_value(""),
                                                             "workloads of this platform")(
      "assets-dir", po::value<std::string>()->default_value("$OUTPUT_PATH"), "what {assets_dir} stands for")(
      "artifacts-dir", po::value<std::string>()->default_value("$OUTPUT_PATH"), "what {artifacts_dir} stands for")(
      "container-tag", po::value<std::string>()->default_value("main"), "tag of the images of builds")(
      "container-image", po::value<std::string>()->default_value(""),
      "image of all builds (default: each build's own)")("strict", "warnings fail")(
      "json", "print one JSON array, each workload with its spec, name and script");
  po::variables_map values;
  if (const auto code = parse("assay recipe list FILE... [options]", description, "path", words, &values)) return *code;
  auto options = catalogue_options(values);
  if (!options) return fail(options.status());
  options->folders = {.assets = values["assets-dir"].as<std::string>(),
                      .artifacts = values["artifacts-dir"].as<std::string>()};
  options->container_tag = values["container-tag"].as<std::string>();
  options->container_image = values["container-image"].as<std::string>();
  const auto catalogue = read(values, *options);
  if (!catalogue) return fail(catalogue.status());
  print(catalogue->findings);
  const std::string text = values.count("json") != 0 ? recipe::list_json(*catalogue) : recipe::list_text(*catalogue);
  std::cout.write(text.data(), static_cast<std::streamsize>(text.size()));
  if (has_errors(catalogue->findings)) return kExitFailed;
  if (values.count("strict") != 0 && !catalogue->findings.empty()) return kExitFailed;
  return catalogue->entries.empty() ? nothing_selected(*catalogue) : kExitOk;
}

int run_workloads(const Words& words) {
  constexpr unsigned kHelpColumns = 100;
  po::options_description description(
      "options (--environment and --platform select workloads; --strict: warnings, too, fail)", kHelpColumns);
  add_query_options(&description);
  add_run_options(&description, "recipe files, or folders of them");
  add_report_options(&description);
  add_part_options(&description);
  po::variables_map asked;
  if (const auto code = parse("assay recipe run FILE... [options]", description, "path", words, &asked)) return *code;
  const Result<po::variables_map> settled = with_parts(description, std::move(asked), {"recipe", "run"});
  if (!settled) return fail(settled.status());
  const po::variables_map& values = *settled;
  const auto query = catalogue_options(values);
  if (!query) return fail(query.status());
  const auto catalogue = read(values, *query);
  if (!catalogue) return fail(catalogue.status());
  print(catalogue->findings);
  const bool strict = values.count("strict") != 0;
  if (strict && !catalogue->findings.empty()) {
    std::cerr << fmt::format("assay: --strict: {} finding{} in the recipes, nothing is run\n",
                             catalogue->findings.size(), catalogue->findings.size() == 1 ? "" : "s");
    return kExitFailed;
  }
  const auto settings = parse_settings(all(values, "set"));
  if (!settings) return fail(settings.status());
  discover::Variables given;
  given.set.insert(settings->begin(), settings->end());
  for (const auto& [name, value] : environment()) given.environment.emplace(name, value);
  RecipeCases work = cases_of(*catalogue, values["engine"].as<std::string>(), given);
  const bool broken = has_errors(catalogue->findings);
  if (work.cases.empty()) return broken ? kExitFailed : nothing_selected(*catalogue);
  Words command = {"assay", "recipe", "run"};
  command.insert(command.end(), words.begin(), words.end());
  auto options = make_run_options(values, command, std::move(work.cases));
  if (!options) return fail(options.status());
  if (Status taken = take_parts(values, &*options); !taken.ok()) return fail(taken);
  options->settings = std::move(work.settings);
  const int code = run_and_report(values, *std::move(options));
  return broken && code != kExitUsage ? kExitFailed : code;
}

}  // namespace

int recipe_command(const Words& words) {
  constexpr const char* kUsage = "assay recipe list|run FILE... [options]";
  if (words.empty()) return refuse(kUsage, "recipe: expected list or run");
  const Words rest(words.begin() + 1, words.end());
  if (words[0] == "list") return list(rest);
  if (words[0] == "run") return run_workloads(rest);
  if (words[0] != "--help") return refuse(kUsage, "recipe: '" + words[0] + "': expected list or run");
  std::cout << "usage: " << kUsage << "\n\n'assay recipe list --help' and 'assay recipe run --help' tell more.\n";
  return kExitOk;
}

}  // namespace assay::cli
