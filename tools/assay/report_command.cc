#include <filesystem>
#include <iostream>
#include <map>

#include "core/report/github_summary.h"
#include "core/report/html_page.h"
#include "core/report/junit.h"
#include "core/report/report_json.h"
#include "core/report/tap.h"
#include "core/report/write_file.h"
#include "tools/assay/command.h"
#include "tools/assay/report_run.h"

namespace assay::cli {

namespace po = boost::program_options;

namespace {

struct Format {
  const char* name;
  const char* file;  // below the run's folder, unless --output says where
  std::string (*make)(const report::ReportRun& run);
};

constexpr Format kFormats[] = {
    {"html", "report.html", report::html_page},
    {"junit", "junit.xml", report::junit_xml},
    {"json", "report.json", report::report_json},
    {"tap", "report.tap", report::tap_text},
    {"github", "summary.md", [](const report::ReportRun& run) { return report::github_summary(run); }},
};

const Format* find_format(const std::string& name) {
  for (const Format& format : kFormats) {
    if (name == format.name) return &format;
  }
  return nullptr;
}

}  // namespace

int report_command(const Words& words) {
  constexpr const char* kUsage = "assay report RUN [options]";
  std::string format_name;
  std::string output;
  std::string history;
  po::options_description options("options");
  options.add_options()("run", po::value<Words>(), "output folder of a run, finished or killed")(
      "format", po::value(&format_name)->default_value("html"), "html, junit, json, tap or github")(
      "output", po::value(&output)->default_value(""),
      "file to write, - for stdout (default: in RUN, as a run names it)")(
      "history", po::value(&history)->default_value(""), "folder of earlier runs (default: the one that holds RUN)")(
      "strict", "EQUIVALENT does not pass");
  po::variables_map values;
  if (const auto code = parse(kUsage, options, "run", words, &values)) return *code;
  const Words folders = all(values, "run");
  if (folders.size() != 1) {
    return refuse(kUsage, "report: " + std::to_string(folders.size()) + " folders given, expected one RUN");
  }
  const Format* format = find_format(format_name);
  if (format == nullptr)
    return fail(invalid("--format '" + format_name + "': expected html, junit, json, tap or github"));
  std::error_code code;
  const std::filesystem::path folder = std::filesystem::absolute(folders[0], code).lexically_normal();
  Result<run::RunRecord> record = run::read_run(folder);
  if (!record) return fail(record.status());
  record->strict = record->strict || values.count("strict") != 0;
  report::ReportRun run = report_run(*record);
  if (format_name == "html") {
    if (Status status = check_history(history); !status.ok()) return fail(status);
    const std::filesystem::path parent =
        folder.has_filename() ? folder.parent_path() : folder.parent_path().parent_path();
    add_history(history.empty() ? parent.string() : history, &run);
  }
  if (output == "-") {
    std::cout << format->make(run);
    return kExitOk;
  }
  if (output.empty()) output = (folder / format->file).string();
  if (const Status written = report::write_report(output, format->make(run), "report"); !written.ok())
    return fail(written);
  std::cout << output << "\n";
  return kExitOk;
}

}  // namespace assay::cli
