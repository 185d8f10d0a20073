#include "core/run/worker_plan.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/golden/json_reason.h"
#include "core/golden/whole_number.h"

namespace assay::run {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kPlanSchema = 1;

// Members of both structs, once for both directions.
template <class Order, class Visit>
void visit_order(Order& o, Visit&& visit) {
  visit("id", o.id);
  visit("name", o.name);
  visit("dir", o.dir);
  visit("metrics", o.metrics);
  visit("tolerances", o.tolerances);
  visit("known_completion", o.known_completion);
  visit("known_sources", o.known_sources);
  visit("engine_options", o.engine_options);
  visit("prompts", o.prompts);
  visit("first_id", o.first_id);
  visit("recorded", o.recorded);
  visit("request_ids", o.request_ids);
  visit("max_new_tokens", o.max_new_tokens);
  visit("top_n", o.top_n);
  visit("logprobs", o.logprobs);
  visit("routing", o.routing);
  visit("temperature", o.temperature);
  visit("top_k", o.top_k);
  visit("top_p", o.top_p);
  visit("seed", o.seed);
  visit("repeats", o.repeats);
  visit("first_repeat", o.first_repeat);
  visit("passes", o.passes);
  visit("output_every", o.output_every);
  visit("record_quantities", o.record_quantities);
  visit("output_path", o.output_path);
  visit("deterministic", o.deterministic);
  visit("golden", o.golden);
  visit("uncompared", o.uncompared);
  visit("training", o.training);
  visit("relation", o.relation);
  visit("metamorphic_batches", o.metamorphic.batches);
  visit("metamorphic_chunks", o.metamorphic.chunks);
  visit("metamorphic_prompt_tokens", o.metamorphic.prompt_tokens);
  visit("metamorphic_new_tokens", o.metamorphic.new_tokens);
  visit("metamorphic_threads", o.metamorphic.threads);
}

template <class Plan, class Visit>
void visit_plan(Plan& p, Visit&& visit) {
  visit("run_id", p.run_id);
  visit("assay_version", p.assay_version);
  visit("digest_weights", p.digest_weights);
  visit("worker", p.worker);
  visit("device", p.device);
  visit("output", p.output);
  visit("heartbeat", p.heartbeat);
  visit("heartbeat_seconds", p.heartbeat_seconds);
  visit("engine", p.engine);
  visit("backend", p.backend);
  visit("backend_options", p.backend_options);
  visit("model", p.model);
  visit("environment_name", p.environment_name);
  visit("platform", p.platform);
}

}  // namespace

std::string to_json(const WorkerPlan& plan) {
  Json json = {{"schema", kPlanSchema}};
  visit_plan(plan, [&](const char* name, const auto& value) { json[name] = value; });
  Json dirs = Json::array();
  for (const auto& dir : plan.plugins.plugin_path) dirs.push_back(dir.string());
  json["plugins"] = {{"plugin_path", dirs},
                     {"environment", plan.plugins.environment},
                     {"install_dir", plan.plugins.install_dir.string()}};
  Json orders = Json::array();
  for (const CaseOrder& order : plan.cases) {
    Json entry = Json::object();
    visit_order(order, [&](const char* name, const auto& value) { entry[name] = value; });
    orders.push_back(std::move(entry));
  }
  json["cases"] = std::move(orders);
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<WorkerPlan> parse_worker_plan(const std::string& text) {
  try {
    const Json json = Json::parse(text);
    const int schema = json::whole<int>(json.at("schema"));
    if (schema != kPlanSchema) {
      return invalid(fmt::format("worker plan: schema {}, expected {}; runner and worker are of different builds",
                                 schema, kPlanSchema));
    }
    WorkerPlan plan;
    visit_plan(plan, [&](const char* name, auto& value) { json.at(name).get_to(value); });
    const Json& plugins = json.at("plugins");
    for (const Json& dir : plugins.at("plugin_path")) plan.plugins.plugin_path.emplace_back(dir.get<std::string>());
    plugins.at("environment").get_to(plan.plugins.environment);
    plan.plugins.install_dir = plugins.at("install_dir").get<std::string>();
    for (const Json& entry : json.at("cases")) {
      CaseOrder order;
      visit_order(order, [&](const char* name, auto& value) { entry.at(name).get_to(value); });
      plan.cases.push_back(std::move(order));
    }
    return plan;
  } catch (const Json::exception& failure) {
    return invalid("worker plan: " + json::reason_of(failure.what()));
  }
}

}  // namespace assay::run
