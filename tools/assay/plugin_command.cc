#include <algorithm>
#include <iostream>

#include "core/golden/text.h"
#include "core/plugin/doctor.h"
#include "tools/assay/command.h"
#include "tools/assay/plugin_new.h"

namespace assay::cli {

namespace po = boost::program_options;

namespace {

constexpr const char* kPluginUsage =
    "assay plugin list|doctor [--plugin-path DIR]... [--json]\n"
    "       assay plugin new NAME [options]      write a new plugin, see 'assay plugin new --help'\n"
    "       assay plugin test FILE.so [options]  examine one, see 'assay plugin test --help'";

// "; metrics: a, b" where a comparator serves other metrics than the one of its name.
std::string metrics_text(const plugin::DoctorRow& row) {
  if (row.metrics.empty() || row.metrics == Words{row.name}) return "";
  std::string text;
  for (const std::string& metric : row.metrics) text += (text.empty() ? "; metrics: " : ", ") + metric;
  return text;
}

// "; determinism: L1, L2, L3" of engines and backends.
std::string levels_text(const plugin::DoctorRow& row) {
  return row.levels.empty() ? "" : "; determinism: " + row.levels;
}

// One line a plugin that would be used.
std::string list_text(const plugin::DoctorReport& report) {
  std::string list;
  for (const plugin::DoctorRow& row : report.rows) {
    if (!row.shadowed_by.empty()) {
      list += text::printable(row.file.string() + ": shadowed by " + row.shadowed_by.string()) + "\n";
    } else if (row.ok) {
      list += text::printable(row.kind + " " + row.name + " " + row.version + " (ABI " + row.abi +
                              "): " + row.description + levels_text(row) + metrics_text(row)) +
              "\n";
    } else {
      list += text::printable(row.message) + "\n";
    }
  }
  return list;
}

}  // namespace

int plugin_command(const Words& words) {
  if (!words.empty() && words[0] == "new") return plugin_new_command({words.begin() + 1, words.end()});
  if (!words.empty() && words[0] == "test") return plugin_test_command({words.begin() + 1, words.end()});
  po::options_description options("options");
  options.add_options()("plugin-path", po::value<Words>(), "folder to look in first; repeatable")("json", "print JSON")(
      "action", po::value<Words>(), "list: what would be used; doctor: every file and its trouble");
  po::variables_map values;
  const bool examines = !words.empty() && words[0] == "doctor";  // it tells of folders that are none
  if (const auto code = parse(kPluginUsage, options, "action", words, &values, examines)) return *code;
  const Words actions = all(values, "action");
  if (actions.size() != 1 || (actions[0] != "list" && actions[0] != "doctor")) {
    const std::string seen = actions.size() > 1 && (actions[0] == "list" || actions[0] == "doctor")
                                 ? actions[0] + ": '" + actions[1] + "': no such word is expected"
                             : actions.empty() ? "expected one of list, doctor, new, test"
                                               : "'" + actions[0] + "': expected one of list, doctor, new, test";
    return refuse(kPluginUsage, "plugin " + seen);
  }
  const plugin::DoctorReport report = plugin::doctor(search_options(values));
  if (values.count("json") != 0) {
    std::cout << plugin::to_json(report);
  } else {
    std::cout << (actions[0] == "list" ? list_text(report) : plugin::to_text(report));
  }
  if (actions[0] == "list") return kExitOk;
  return report.healthy() ? kExitOk : kExitFailed;
}

}  // namespace assay::cli
