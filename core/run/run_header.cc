#include "core/run/run_header.h"

#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <system_error>

#include "core/command/redact.h"
#include "core/run/events.h"

namespace assay::run {
namespace {

using Json = nlohmann::ordered_json;

std::string absolute_of(const std::filesystem::path& path) {
  std::error_code code;
  return path.empty() ? "" : std::filesystem::absolute(path, code).lexically_normal().string();
}

Json shard_json(const ShardInfo& info) {
  Json json = {{"index", info.index},         {"count", info.count},           {"cases", info.cases},
               {"rows", info.rows},           {"cases_here", info.cases_here}, {"loads", info.loads},
               {"estimated", info.estimated}, {"case_list", info.case_list},   {"partition", info.partition}};
  if (!info.predicted.empty()) json["predicted"] = info.predicted[info.index - 1];
  return json;
}

}  // namespace

Json options_json(const RunOptions& options) {
  return {{"variables", options.variables},
          {"engine", options.engine},
          {"backend", options.backend},
          {"engine_options", options.engine_options},
          {"backend_options", options.backend_options},
          {"recorded", absolute_of(options.recorded)},
          {"filter", options.filter},
          {"jobs", options.jobs},
          {"launcher", options.launcher},
          {"repeat", options.repeat},
          {"metamorphic", options.metamorphic},
          {"compat", options.compat},
          {"strict", options.strict},
          {"allow_scripts", options.allow_scripts}};
}

std::vector<std::string> option_differences(const Json& recorded, const Json& now) {
  std::vector<std::string> lines;
  for (const auto& [name, value] : now.items()) {
    const auto before = recorded.find(name);
    if (name == "jobs" || before == recorded.end() || *before == value) continue;
    const auto text = [](const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); };
    lines.push_back(fmt::format("{}: recorded {}, now {}", name, text(*before), text(value)));
  }
  return lines;
}

Json started_event(const RunOptions& options, const RunInfo& info) {
  std::error_code code;
  Json json = make_event(event::kRunStarted);
  json["schema"] = kEventSchema;
  json["run_id"] = info.run_id;
  json["version"] = options.assay_version;
  json["command"] = command::Redactor().words(options.command);  // by their names; the recorder knows values
  json["directory"] = std::filesystem::current_path(code).string();
  json["options"] = options_json(options);
  json["environment"] = options.environment_name;
  json["platform"] = options.platform;
  json["cases"] = info.cases;
  json["filtered"] = info.filtered;
  json["groups"] = info.groups;
  if (info.shard.index > 0) json["shard"] = shard_json(info.shard);
  return json;
}

Json planned_event(const CaseOutcome& outcome, const std::string& digest) {
  Json json = make_event(event::kCasePlanned);
  json["case"] = outcome.id;
  json["name"] = outcome.name;
  json["path"] = outcome.path;
  json["model"] = outcome.model;
  json["metrics"] = outcome.metrics;
  if (!outcome.relation.empty()) json["relation"] = outcome.relation;
  if (!digest.empty()) json["digest"] = digest;
  json["reproduce"] = outcome.reproduce;
  return json;
}

Json outcome_event(const CaseOutcome& outcome) {
  Json json = make_event(event::kCaseFinished);
  json["case"] = outcome.id;
  json["name"] = outcome.name;
  json["verdict"] = to_json(outcome.verdict);
  json["summary"] = to_json(outcome.summary);
  if (outcome.provenance) json["provenance"] = Json::parse(to_json(*outcome.provenance));
  json["actual"] = outcome.actual;
  json["log"] = outcome.log;
  if (outcome.repeats.empty()) return json;
  json["repeats"] = Json::array();
  for (const Repeat& repeat : outcome.repeats) json["repeats"].push_back(to_json(repeat));
  return json;
}

Json finished_event(const RunSummary& summary, bool strict) {
  Json json = make_event(event::kRunFinished);
  std::map<std::string, int> counts;
  for (const Verdict verdict : summary.verdicts()) ++counts[std::string(to_string(verdict))];
  json["seconds"] = summary.seconds;
  json["counts"] = counts;
  json["exit_code"] = exit_code(summary.verdicts(), strict);
  json["loads"] = summary.loads;
  json["crashes"] = summary.crashes;
  json["cancelled"] = summary.cancelled;
  json["unused_waivers"] = Json::array();  // of cases that pass without them
  for (const CaseOutcome& outcome : summary.outcomes) {
    if (has_unused_waiver(outcome.verdict)) json["unused_waivers"].push_back(outcome.name);
  }
  return json;
}

}  // namespace assay::run
