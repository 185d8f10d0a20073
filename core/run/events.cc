#include "core/run/events.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/compare/verdict_value.h"
#include "core/golden/json_reason.h"

namespace assay::run {
namespace {

using Json = nlohmann::ordered_json;

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(fmt::format("{}", value)); }

double number(const Json& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end()) return 0;
  if (found->is_number()) return found->get<double>();
  return std::stod(found->get<std::string>());  // "nan", "inf", "-inf"
}

// The members of CaseSummary, once for both directions.
template <class Summary, class Visit>
void visit_members(Summary& s, Visit&& visit) {
  visit("engine", s.engine);
  visit("backend", s.backend);
  visit("device", s.device);
  visit("platform", s.platform);
  visit("arithmetic", s.arithmetic);
  visit("requests", s.requests);
  visit("batch", s.batch);
  visit("prompt_tokens", s.prompt_tokens);
  visit("generated_tokens", s.generated_tokens);
  visit("weight_bytes", s.weight_bytes);
  visit("peak_rss", s.peak_rss);
  visit("prefill_rate", s.prefill_rate);
  visit("decode_rate", s.decode_rate);
  visit("tpot_median", s.tpot_median);
  visit("first_token_seconds", s.first_token_seconds);
  visit("load_seconds", s.load_seconds);
  visit("seconds", s.seconds);
  visit("max_abs_difference", s.max_abs_difference);
  visit("has_difference", s.has_difference);
}

}  // namespace

Json make_event(std::string_view name) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
  return Json{{"event", name}, {"t", static_cast<double>(ms) / 1000}};
}

std::string to_line(const Json& event) { return event.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n"; }

Result<Json> parse_line(std::string_view line) {
  Json json = Json::parse(line, nullptr, false);
  if (!json.is_object()) return invalid("event line is not a JSON object");
  const auto name = json.find("event");
  if (name == json.end() || !name->is_string()) return invalid("event line has no \"event\"");
  return json;
}

Json to_json(const CaseVerdict& verdict) { return compare::verdict_value(verdict); }

Json to_json(const CaseSummary& summary) {
  Json json = Json::object();
  visit_members(summary, [&json](const char* name, const auto& value) {
    if constexpr (std::is_same_v<std::decay_t<decltype(value)>, double>) {
      json[name] = number(value);
    } else {
      json[name] = value;
    }
  });
  return json;
}

Json to_json(const Repeat& repeat) {
  return {{"verdict", to_string(repeat.verdict)},
          {"reason", repeat.reason},
          {"seconds", repeat.seconds},
          {"identical_to_first", repeat.identical_to_first},
          {"difference", repeat.difference},
          {"actual", repeat.actual}};
}

Result<Repeat> parse_repeat(const Json& json) {
  try {
    const std::string name = json.value("verdict", "");
    const std::optional<Verdict> verdict = parse_verdict(name);
    if (!verdict) return invalid(fmt::format("repeat of an event: unknown verdict \"{}\"", name));
    return Repeat{.verdict = *verdict,
                  .reason = json.value("reason", ""),
                  .seconds = json.value("seconds", 0.0),
                  .identical_to_first = json.value("identical_to_first", false),
                  .difference = json.value("difference", ""),
                  .actual = json.value("actual", "")};
  } catch (const Json::exception& failure) {
    return invalid("repeat of an event: " + json::reason_of(failure.what()));
  }
}

Result<CaseVerdict> parse_case_verdict(const Json& json) { return compare::parse_verdict_value(json); }

Result<CaseSummary> parse_case_summary(const Json& json) {
  try {
    CaseSummary summary;
    visit_members(summary, [&json](const char* name, auto& value) {
      using Value = std::decay_t<decltype(value)>;
      if constexpr (std::is_same_v<Value, double>) {
        value = number(json, name);
      } else {
        value = json.value(name, Value{});
      }
    });
    return summary;
  } catch (const std::exception& failure) {
    return invalid("summary of an event: " + json::reason_of(failure.what()));
  }
}

}  // namespace assay::run
