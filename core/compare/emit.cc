#include "core/compare/emit.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "assay/sdk.hpp"

namespace assay::compare {
namespace {

Result<nlohmann::json> object_of(assay_str options) {
  if (options.size == 0) return nlohmann::json::object();
  nlohmann::json parsed = nlohmann::json::parse(sdk::text(options), nullptr, false);
  if (!parsed.is_object()) {
    return invalid(fmt::format("options {}: expected a JSON object", sdk::text(options).substr(0, 80)));
  }
  return parsed;
}

}  // namespace

Result<double> tolerance_option(assay_str options, double otherwise) {
  const Result<nlohmann::json> object = object_of(options);
  if (!object) return object.status();
  double tolerance = otherwise;
  for (const auto& [name, value] : object->items()) {
    if (name != "tolerance") return invalid(fmt::format("unknown option \"{}\"; expected \"tolerance\"", name));
    if (!value.is_number()) return invalid(fmt::format("tolerance is {}, expected a number >= 0", value.dump()));
    tolerance = value.get<double>();
  }
  if (std::isfinite(tolerance) && tolerance >= 0) return tolerance;
  return invalid(fmt::format("tolerance is {}, expected a finite number >= 0", tolerance));
}

Status no_options(assay_str options, std::string_view metric) {
  const Result<nlohmann::json> object = object_of(options);
  if (!object) return object.status();
  if (object->empty()) return {};
  return invalid(fmt::format("{} takes no option, got \"{}\": remove it from ASSAY.tolerance", metric,
                             object->items().begin().key()));
}

void emit(const assay_sink& sink, const Observation& observation) {
  auto finding = sdk::sized<assay_finding>();
  finding.kind = observation.kind;
  finding.id = observation.id;
  finding.index = observation.index;
  finding.compared = observation.compared;
  finding.differing = observation.differing;
  finding.max_abs_difference = observation.max_abs_difference;
  finding.smallest_passing_tolerance = observation.smallest_passing_tolerance;
  finding.message = sdk::view(observation.message);
  sink.finding(sink.context, &finding);
}

bool emit_missing(const assay_sink& sink, const assay_pair& pair, uint32_t bit, std::string_view field) {
  const bool reference = (pair.reference->has & bit) != 0;
  const bool candidate = (pair.candidate->has & bit) != 0;
  if (reference && candidate) return false;
  const std::string_view side = reference ? "the result" : candidate ? "the golden" : "golden and result";
  emit(sink, {.kind = ASSAY_FINDING_MISSING, .id = pair.id, .message = fmt::format("{} lacks {}", side, field)});
  return true;
}

}  // namespace assay::compare
