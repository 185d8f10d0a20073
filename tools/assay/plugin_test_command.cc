#include <fmt/format.h>

#include <iostream>

#include "core/conformance/kit.h"
#include "tools/assay/plugin_new.h"

namespace assay::cli {

namespace po = boost::program_options;

int plugin_test_command(const Words& words) {
  constexpr const char* kUsage = "assay plugin test FILE.so... [--options JSON] [--prompt TEXT]... [--json]";
  po::options_description options("options");
  options.add_options()("file", po::value<Words>(), "shared objects named <kind>_<name>.so")(
      "options", po::value<std::string>()->default_value("{}"),
      "JSON object that an engine or launcher is opened with")(
      "prompt", po::value<Words>(), "a text that an engine without a backend answers; repeatable")(
      "timeout", po::value<double>()->default_value(60), "seconds that one check may take")("json", "print JSON");
  po::variables_map values;
  if (const auto code = parse(kUsage, options, "file", words, &values)) return *code;
  const Words files = all(values, "file");
  if (files.empty()) {
    return refuse(kUsage, "plugin test: no file given, expected one or more");
  }
  const double seconds = values["timeout"].as<double>();
  if (!(seconds >= 0.1 && seconds <= 86400)) return fail(invalid("--timeout: expected 0.1 to 86400 seconds"));
  conformance::KitOptions kit;
  kit.options = values["options"].as<std::string>();
  kit.prompts = all(values, "prompt");
  kit.limit = std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
  bool passed = true;
  std::string objects;
  for (const std::string& file : files) {
    const auto report = conformance::test_plugin(file, kit);
    if (!report) return fail(report.status());
    passed = passed && report->passed();
    if (values.count("json") != 0) {
      objects += (objects.empty() ? "" : ",\n") + conformance::to_json(*report);
    } else {
      std::cout << conformance::to_text(*report) << std::flush;
    }
  }
  if (values.count("json") != 0) std::cout << (files.size() == 1 ? objects : "[" + objects + "]\n");
  return passed ? kExitOk : kExitFailed;
}

}  // namespace assay::cli
