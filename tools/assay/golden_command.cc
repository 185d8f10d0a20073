#include <fmt/format.h>

#include <iostream>
#include <map>
#include <nlohmann/json.hpp>

#include "core/golden/text.h"
#include "core/govern/lint.h"
#include "tools/assay/command.h"

namespace assay::cli {

namespace po = boost::program_options;

namespace {

constexpr const char* kGoldenUsage = "assay golden lint [PATH]... [options]";

std::string json_of(const govern::LintReport& report) {
  nlohmann::ordered_json findings = nlohmann::ordered_json::array();
  for (const govern::LintFinding& finding : report.findings) {
    findings.push_back({{"level", finding.level == govern::LintLevel::kError ? "error" : "note"},
                        {"rule", finding.rule},
                        {"path", finding.path},
                        {"message", finding.message}});
  }
  const nlohmann::ordered_json json = {{"cases", report.cases},
                                       {"goldens", report.goldens},
                                       {"pending", report.pending},
                                       {"errors", report.count(govern::LintLevel::kError)},
                                       {"notes", report.count(govern::LintLevel::kNote)},
                                       {"prompts_not_resolved", report.unresolved_prompts},
                                       {"findings", findings}};
  return json.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

void print(const govern::LintReport& report, bool all_notes) {
  std::map<std::string, std::pair<size_t, const govern::LintFinding*>> notes;  // by rule: how many, the first
  for (const govern::LintFinding& finding : report.findings) {
    const bool error = finding.level == govern::LintLevel::kError;
    if (error || all_notes) {
      std::cout << fmt::format("{:<5} {:<16} {}: {}\n", error ? "error" : "note", finding.rule,
                               text::printable(finding.path), text::printable(finding.message));
      continue;
    }
    auto& [count, first] = notes[finding.rule];
    if (count++ == 0) first = &finding;
  }
  for (const auto& [rule, seen] : notes) {
    std::cout << fmt::format("note  {:<16} {} times, first {}: {}\n", rule, seen.first,
                             text::printable(seen.second->path), text::printable(seen.second->message));
  }
  if (report.unresolved_prompts > 0) {
    std::cout << fmt::format(
        "note  prompts          of {} cases could not be read (variables not --set, or files "
        "absent): their requests were not held against them\n",
        report.unresolved_prompts);
  }
  std::cout << fmt::format("{} goldens and {} pending of {} cases: {} errors, {} notes\n", report.goldens,
                           report.pending, report.cases, report.count(govern::LintLevel::kError),
                           report.count(govern::LintLevel::kNote));
}

int lint_command(const Words& words) {
  po::options_description options("options");
  options.add_options()("path", po::value<Words>(), "case folders, or folders of cases (default: .)")(
      "environment", po::value<std::string>()->default_value(""), "goldens of this environment alone")(
      "platform", po::value<std::string>()->default_value(""), "goldens of this platform alone")(
      "set", po::value<Words>(), "NAME=VALUE: a variable that cases name as ${NAME}; repeatable")(
      "pending-dir", po::value<std::string>()->default_value(""), "folder of pending goldens, besides the cases' own")(
      "require-provenance", "goldens without provenance are errors")("notes", "print every note, not one of a kind")(
      "json", "print one JSON object");
  po::variables_map values;
  if (const auto code = parse(kGoldenUsage, options, "path", words, &values)) return *code;
  Words paths = all(values, "path");
  if (paths.empty()) paths = {"."};
  const auto settings = parse_settings(all(values, "set"));
  if (!settings) return fail(settings.status());
  govern::LintOptions lint;
  lint.environment = values["environment"].as<std::string>();
  lint.platform = values["platform"].as<std::string>();
  lint.require_provenance = values.count("require-provenance") != 0;
  lint.pending_dir = values["pending-dir"].as<std::string>();
  lint.variables.set.insert(settings->begin(), settings->end());
  for (const auto& [name, value] : environment()) lint.variables.environment.emplace(name, value);
  const auto report = govern::lint(paths, lint);
  if (!report) return fail(report.status());
  if (values.count("json") != 0) {
    std::cout << json_of(*report);
  } else {
    print(*report, values.count("notes") != 0);
  }
  if (report->count(govern::LintLevel::kError) > 0) return kExitFailed;
  return report->goldens + report->pending == 0 ? kExitNothingRan : kExitOk;
}

}  // namespace

int golden_command(const Words& words) {
  if (!words.empty() && words[0] == "lint") return lint_command({words.begin() + 1, words.end()});
  if (words.empty()) return refuse(kGoldenUsage, "golden: expected lint");
  if (words[0] != "--help") return refuse(kGoldenUsage, "golden: '" + words[0] + "': expected lint");
  std::cout << "usage: " << kGoldenUsage << "\n\n  lint   find golden files that cannot do their work\n";
  return kExitOk;
}

}  // namespace assay::cli
