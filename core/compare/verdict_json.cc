#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/compare/evidence_json.h"
#include "core/compare/render.h"
#include "core/compare/verdict_value.h"
#include "core/golden/json_reason.h"
#include "core/golden/whole_number.h"

namespace assay::compare {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Numbers that JSON lacks become the strings that Python gives them.
Json number(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity";
}

double number_in(const Json& json) {
  if (!json.is_string()) return json.get<double>();
  const std::string name = json.get<std::string>();
  if (name == "Infinity") return kInfinity;
  if (name == "-Infinity") return -kInfinity;
  if (name == "NaN") return std::numeric_limits<double>::quiet_NaN();
  throw Json::other_error::create(500, "\"" + name + "\" is no number", &json);
}

Json to_json(const Finding& finding) {
  return {{"verdict", to_string(finding.verdict)},
          {"note", finding.note},
          {"request", finding.request},
          {"index", finding.index},
          {"compared", finding.compared},
          {"differing", finding.differing},
          {"max_abs_difference", number(finding.max_abs_difference)},
          {"smallest_passing_tolerance", number(finding.smallest_passing_tolerance)},
          {"message", finding.message}};
}

Verdict verdict_in(const Json& object, const char* member = "verdict") {
  const std::string name = object.at(member).get<std::string>();
  const std::optional<Verdict> verdict = parse_verdict(name);
  if (!verdict) throw Json::other_error::create(500, "unknown verdict \"" + name + "\"", &object);
  return *verdict;
}

CompatVerdict compat_in(const Json& object) {
  const std::string name = object.at("verdict").get<std::string>();
  for (const auto outcome : {CompatVerdict::kPassed, CompatVerdict::kFailed, CompatVerdict::kSkipped}) {
    if (name == to_string(outcome)) return {outcome, object.at("message").get<std::string>()};
  }
  throw Json::other_error::create(500, "unknown verdict \"" + name + "\" of another comparator", &object);
}

Finding finding_in(const Json& object) {
  Finding finding;
  finding.verdict = verdict_in(object);
  finding.note = object.at("note").get<bool>();
  finding.request = object.at("request").get<std::string>();
  finding.index = json::whole<int64_t>(object.at("index"));
  finding.compared = json::whole<uint64_t>(object.at("compared"));
  finding.differing = json::whole<uint64_t>(object.at("differing"));
  finding.max_abs_difference = number_in(object.at("max_abs_difference"));
  finding.smallest_passing_tolerance = number_in(object.at("smallest_passing_tolerance"));
  finding.message = object.at("message").get<std::string>();
  return finding;
}

}  // namespace

Json verdict_value(const CaseVerdict& verdict) {
  Json metrics = Json::array();
  for (const MetricVerdict& metric : verdict.metrics) {
    Json findings = Json::array();
    for (const Finding& finding : metric.findings) findings.push_back(to_json(finding));
    metrics.push_back({{"metric", metric.metric}, {"verdict", to_string(metric.verdict)}, {"findings", findings}});
  }
  Json object = {{"verdict", to_string(verdict.verdict)},
                 {"reason", verdict.reason},
                 {"golden", verdict.golden},
                 {"metrics", metrics}};
  if (!verdict.evidence.empty()) object["evidence"] = evidence_to_json(verdict.evidence);
  if (!verdict.environment.empty()) object["environment"] = verdict.environment;
  if (!verdict.declared.empty()) object["declared"] = verdict.declared;
  if (verdict.judged) object["judged"] = to_string(*verdict.judged);
  if (verdict.compat) {
    object["compat"] = {{"of", "megatron"},
                        {"verdict", to_string(verdict.compat->outcome)},
                        {"message", verdict.compat->message},
                        {"disagrees", disagrees(verdict)}};
  }
  return object;
}

std::string verdict_json(const CaseVerdict& verdict) {
  return verdict_value(verdict).dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<CaseVerdict> parse_verdict_json(std::string_view json) {
  try {
    return parse_verdict_value(Json::parse(json));
  } catch (const Json::exception& failure) {
    return invalid("verdict as JSON: " + json::reason_of(failure.what()));
  }
}

Result<CaseVerdict> parse_verdict_value(const Json& object) {
  try {
    CaseVerdict verdict;
    verdict.verdict = verdict_in(object);
    verdict.reason = object.at("reason").get<std::string>();
    verdict.golden = object.at("golden").get<std::string>();
    for (const Json& entry : object.at("metrics")) {
      MetricVerdict metric;
      metric.metric = entry.at("metric").get<std::string>();
      metric.verdict = verdict_in(entry);
      for (const Json& finding : entry.at("findings")) metric.findings.push_back(finding_in(finding));
      verdict.metrics.push_back(std::move(metric));
    }
    if (object.contains("evidence")) verdict.evidence = evidence_from_json(object["evidence"]);
    verdict.environment = object.value("environment", verdict.environment);
    verdict.declared = object.value("declared", verdict.declared);
    if (object.contains("judged")) verdict.judged = verdict_in(object, "judged");
    if (object.contains("compat")) verdict.compat = compat_in(object["compat"]);
    return verdict;
  } catch (const Json::exception& failure) {
    return invalid("verdict as JSON: " + json::reason_of(failure.what()));
  }
}

}  // namespace assay::compare
