#include <algorithm>
#include <iostream>
#include <thread>

#include "core/discover/discover.h"
#include "core/discover/list.h"
#include "tools/assay/command.h"

namespace assay::cli {

namespace po = boost::program_options;

int list_command(const Words& words) {
  po::options_description options("options");
  options.add_options()("path", po::value<Words>(), "case folders, or folders of cases (default: .)")(
      "json", "print one JSON array");
  po::variables_map values;
  if (const auto code = parse("assay list [PATH]... [--json]", options, "path", words, &values)) return *code;
  Words paths = all(values, "path");
  if (paths.empty()) paths = {"."};
  const int threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  const auto cases = discover::discover(paths, threads);
  if (!cases) return fail(cases.status());
  const std::string text = values.count("json") != 0 ? discover::list_json(*cases) : discover::list_text(*cases);
  std::cout.write(text.data(), static_cast<std::streamsize>(text.size()));
  const bool broken = std::any_of(cases->begin(), cases->end(), [](const TestCase& one) { return !one.error.ok(); });
  if (broken) return kExitFailed;
  return cases->empty() ? kExitNothingRan : kExitOk;
}

}  // namespace assay::cli
