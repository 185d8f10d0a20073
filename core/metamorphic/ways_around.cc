// Relations about what is around a request: another engine, device, file.
#include <fmt/format.h>

#include "core/metamorphic/experiment.h"

namespace assay::metamorphic {
namespace {

constexpr size_t kRequests = 4;

Way asked(const Setting& setting, std::string name) {
  Way way;
  way.name = std::move(name);
  std::vector<Ask> asks = setting.workload.asks(kRequests);
  asks[0] = setting.workload.long_ask(0);
  asks[1] = over_a_block(setting.workload, 1);
  way.calls.push_back({.asks = std::move(asks)});
  return way;
}

}  // namespace

Experiment static_vs_buffered(const Setting& setting) {
  Experiment made;
  const std::string other = setting.engine == "static_legacy" ? "buffered" : "static_legacy";
  Trial trial;
  trial.reference = asked(setting, fmt::format("engine {}", setting.engine));
  Way way = asked(setting, fmt::format("engine {}", other));
  way.engine = other;
  if (!setting.laboratory.capabilities(other)) made.missing = fmt::format("there is no engine {}", other);
  for (Way* one : {&trial.reference, &way}) {  // what the other engine does not know
    one->engine_options["results"] = "\"static\"";
    one->engine_options["stop_words"] = "[]";
    one->engine_options["termination_id"] = "null";
  }
  trial.changed.push_back({.way = std::move(way), .mechanism = two_engines()});
  made.trials.push_back(std::move(trial));
  return made;
}

Experiment thread_count(const Setting& setting) {
  Experiment made;
  if (!setting.laboratory.has_backend_option("threads")) made.missing = "options of the backend lack threads";
  const auto with = [&](int32_t threads) {
    Way way = asked(setting, fmt::format("{} thread{}", threads, threads == 1 ? "" : "s"));
    way.backend_options["threads"] = std::to_string(threads);
    // However small the model, its operators are shared out.
    if (setting.laboratory.has_backend_option("parallel_from")) way.backend_options["parallel_from"] = "0";
    return way;
  };
  Trial trial;
  trial.reference = with(1);
  for (const int32_t threads : setting.parameters.threads) {
    if (threads != 1) trial.changed.push_back({.way = with(threads), .mechanism = device_says(threads)});
  }
  if (trial.changed.empty() && made.missing.empty()) made.missing = "threads names no number but 1: nothing to compare";
  made.trials.push_back(std::move(trial));
  return made;
}

Experiment save_load(const Setting& setting) {
  Experiment made;
  Trial trial;
  trial.reference = asked(setting, "the checkpoint of the case");
  Way way = asked(setting, "the same weights written anew");
  way.resaved = true;
  trial.changed.push_back({.way = std::move(way), .mechanism = other_files()});
  made.trials.push_back(std::move(trial));
  return made;
}

}  // namespace assay::metamorphic
