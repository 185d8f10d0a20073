#include <fmt/format.h>

#include <iostream>

#include "core/golden/date.h"
#include "core/golden/text.h"
#include "core/govern/accept.h"
#include "tools/assay/command.h"
#include "tools/assay/golden_options.h"

namespace assay::cli {

namespace po = boost::program_options;

namespace {

void add_choice(po::options_description* options) {
  options->add_options()("case", po::value<Words>(), "case folder, or one pending file")(
      "environment", po::value<std::string>()->default_value(""), "which pending golden, where there are several")(
      "platform", po::value<std::string>()->default_value(""), "the same");
  add_pending_options(options);
}

// A refusal is an answer, not a bad command line.
int refused(const Status& status) {
  const int code = fail(status);
  return code == kExitInfra ? code : kExitFailed;
}

}  // namespace

int accept_command(const Words& words) {
  constexpr const char* kUsage = "assay accept CASE (--metric M... | --all) --reason TEXT [options]";
  po::options_description options("options");
  options.add_options()("metric", po::value<Words>(), "metric whose values are accepted, or noise; repeatable")(
      "all", "accept all that the pending golden holds, requests and prompts too")(
      "reason", po::value<std::string>()->default_value(""), "why the golden may change; kept in it")(
      "who", po::value<std::string>()->default_value(""), "who accepts (default: git's user.name, or the login name)");
  add_choice(&options);
  po::variables_map values;
  if (const auto code = parse(kUsage, options, "case", words, &values)) return *code;
  if (const auto code = refuse_in_ci("accept")) return *code;
  const Words cases = all(values, "case");
  if (cases.size() != 1) return refuse(kUsage, "accept: name one CASE");
  govern::AcceptRequest request;
  request.metrics = all(values, "metric");
  const bool whole = values.count("all") != 0;
  if (whole == !request.metrics.empty())
    return refuse(kUsage, "accept: give --metric M (repeatable) or --all, one of the two");
  if (whole) request.metrics = {govern::kAllMetrics};
  request.why = values["reason"].as<std::string>();
  if (text::blank(request.why)) {
    return refuse(kUsage, "accept: a golden changes only with a reason: --reason TEXT");
  }
  request.who = values["who"].as<std::string>();
  if (request.who.empty()) request.who = user_name();
  request.when = utc_now();

  plugin::PluginRegistry registry(search_options(values));
  const compare::ComparatorLookup lookup = comparators_of(registry);
  const auto place = find_pending_place(cases[0]);
  if (!place) return fail(place.status());
  const auto item = find_pending_item(*place, values, lookup);
  if (!item) return refused(item.status());
  if (!item->error.ok()) return refused(item->error);
  const auto accepted = govern::accept(item->test, item->pending, request, lookup);
  if (!accepted) return refused(accepted.status());
  std::cout << fmt::format("accepted {} into {}{}\n",
                           whole ? "everything" : fmt::format("{}", fmt::join(accepted->metrics, ", ")),
                           accepted->golden, accepted->created ? " (new)" : "");
  if (!accepted->remaining.empty()) {
    std::cout << fmt::format("still pending: {}\n", fmt::join(accepted->remaining, ", "));
  }
  return kExitOk;
}

int reject_command(const Words& words) {
  constexpr const char* kUsage = "assay reject CASE [options]";
  po::options_description options("options");
  add_choice(&options);
  po::variables_map values;
  if (const auto code = parse(kUsage, options, "case", words, &values)) return *code;
  if (const auto code = refuse_in_ci("reject")) return *code;
  const Words cases = all(values, "case");
  if (cases.size() != 1) return refuse(kUsage, "reject: name one CASE");
  plugin::PluginRegistry registry(search_options(values));
  const auto place = find_pending_place(cases[0]);
  if (!place) return fail(place.status());
  const auto item = find_pending_item(*place, values, comparators_of(registry));
  if (!item) return refused(item.status());
  if (Status status = govern::reject(item->pending.path); !status.ok()) return refused(status);
  std::cout << "rejected: " << item->pending.path << " is removed, the golden stays\n";
  return kExitOk;
}

}  // namespace assay::cli
