#include <fmt/format.h>
#include <unistd.h>

#include <iostream>

#include "core/discover/discover.h"
#include "core/golden/date.h"
#include "core/govern/review.h"
#include "tools/assay/command.h"
#include "tools/assay/golden_options.h"

namespace assay::cli {

namespace po = boost::program_options;

namespace {

// For pipes and logs: what waits, and how to decide without a terminal.
int print_list(const std::vector<govern::PendingItem>& items) {
  for (const govern::PendingItem& item : items) std::cout << govern::item_text(item, false) << "\n";
  std::cout << items.size()
            << " pending. This is no terminal: decide with 'assay accept CASE --metric M --reason TEXT' "
            << "or 'assay reject CASE'; 'assay review --json' prints data\n";
  return kExitOk;
}

}  // namespace

int review_command(const Words& words) {
  po::options_description options("options");
  options.add_options()("path", po::value<Words>(), "case folders, or folders of cases (default: .)")(
      "json", "print one JSON array, and ask nothing")("who", po::value<std::string>()->default_value(""),
                                                       "who accepts (default: git's user.name, or the login name)");
  add_pending_options(&options);
  po::variables_map values;
  if (const auto code = parse("assay review [PATH]... [options]", options, "path", words, &values)) return *code;
  const bool json = values.count("json") != 0;
  if (!json) {  // data for a job's log changes nothing
    if (const auto code = refuse_in_ci("review")) return *code;
  }
  Words paths = all(values, "path");
  if (paths.empty()) paths = {"."};
  const auto cases = discover::discover(paths);
  if (!cases) return fail(cases.status());
  plugin::PluginRegistry registry(search_options(values));
  const compare::ComparatorLookup lookup = comparators_of(registry);
  const auto items = govern::pending_items(*cases, values["pending-dir"].as<std::string>(), lookup);
  if (!items) return fail(items.status());
  if (json) {
    std::cout << govern::items_json(*items);
    return cases->empty() ? kExitNothingRan : kExitOk;
  }
  if (items->empty()) {
    std::cout << "no pending goldens in " << cases->size() << " cases\n";
    return cases->empty() ? kExitNothingRan : kExitOk;
  }
  if (isatty(STDIN_FILENO) == 0 || isatty(STDOUT_FILENO) == 0) return print_list(*items);
  std::string who = values["who"].as<std::string>();
  if (who.empty()) who = user_name();
  const govern::ReviewSummary summary =
      govern::review(*items, {.in = &std::cin, .out = &std::cout, .who = who, .now = utc_now, .lookup = lookup});
  return summary.failed == 0 ? kExitOk : kExitFailed;
}

}  // namespace assay::cli
