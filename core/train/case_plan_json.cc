// CasePlan between the planner and the worker.
#include <nlohmann/json.hpp>

#include "core/golden/json_reason.h"
#include "core/train/case_plan.h"

namespace assay::train {
namespace {

using Json = nlohmann::ordered_json;

template <class Any, class Visit>
void visit_plan(Any& plan, Visit&& visit) {
  visit("name", plan.name);
  visit("type", plan.type);
  visit("rl", plan.rl);
  visit("repeat", plan.repeat);
  visit("train_iters", plan.train_iters);
  visit("uncompared", plan.uncompared);
  visit("xpass", plan.xpass);
  visit("record", plan.record);
  visit("frozen", plan.frozen);
  visit("folder", plan.folder);
  visit("results", plan.results);
  visit("made", plan.made);
  visit("metrics_is_null", plan.metrics_is_null);
  visit("nondeterministic", plan.nondeterministic);
  visit("tolerances", plan.tolerances);
  visit("meeting_folder", plan.meeting.folder);
  visit("meeting_seconds", plan.meeting.seconds);
}

}  // namespace

std::string to_json(const CasePlan& plan) {
  Json json = Json::object();
  visit_plan(plan, [&](const char* name, const auto& value) { json[name] = value; });
  json["runs"] = Json::array();
  for (const Job& job : plan.runs) json["runs"].push_back(to_json(job));
  if (plan.metrics) json["metrics"] = *plan.metrics;
  if (plan.throughput_start) json["throughput_start"] = *plan.throughput_start;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<CasePlan> parse_case_plan(const std::string& text) {
  try {
    const Json json = Json::parse(text);
    CasePlan plan;
    visit_plan(plan, [&](const char* name, auto& value) { json.at(name).get_to(value); });
    for (const Json& run : json.at("runs")) {
      Result<Job> job = parse_job(run.get<std::string>());
      if (!job) return job.status();
      plan.runs.push_back(*std::move(job));
    }
    if (json.contains("metrics")) plan.metrics = json["metrics"].get<std::vector<std::string>>();
    if (json.contains("throughput_start")) plan.throughput_start = json["throughput_start"].get<std::string>();
    return plan;
  } catch (const Json::exception& failure) {
    return invalid("plan of a training case: " + json::reason_of(failure.what()));
  }
}

}  // namespace assay::train
