#include "core/compare/emit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "assay/sdk.hpp"
#include "core/compare/ulp.h"
#include "core/golden/text.h"

namespace assay::compare {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kShown = 80;  // code points of a value quoted in a message

// JSON text cut for a message; ill-formed UTF-8 is no reason to throw.
std::string shown(const Json& value) {
  return std::string(text::prefix(value.dump(-1, ' ', false, Json::error_handler_t::replace), kShown));
}

Status read_number(const std::string& name, const Json& value, std::optional<double>& number) {
  if (value.is_number()) number = value.get<double>();
  if (number && std::isfinite(*number) && *number >= 0) return {};
  return invalid(fmt::format("option {} is {}, expected a finite number >= 0", name, shown(value)));
}

Status read_noise(const Json& value, NoiseOption& noise) {
  if (!value.is_object()) return invalid(fmt::format("option noise is {}, expected an object", shown(value)));
  for (const auto& [name, number] : value.items()) {
    std::optional<double>* member = name == "max"        ? &noise.max
                                    : name == "p99"      ? &noise.p99
                                    : name == "relative" ? &noise.relative
                                                         : nullptr;
    if (member == nullptr) {
      return invalid(fmt::format("unknown option noise.{}; expected max, p99 or relative",
                                 text::printable(name).substr(0, kShown)));
    }
    if (Status status = read_number("noise." + name, number, *member); !status.ok()) return status;
  }
  return {};
}

Status read_sources(const Json& value, std::vector<std::string>& sources) {
  const bool strings =
      value.is_array() && std::all_of(value.begin(), value.end(), [](const Json& item) { return item.is_string(); });
  if (!strings) return invalid(fmt::format("option sources is {}, expected a list of paths", shown(value)));
  sources = value.get<std::vector<std::string>>();
  return {};
}

Status read_member(const std::string& name, const Json& value, ComparatorOptions& options) {
  if (name == "tolerance") return read_number(name, value, options.tolerance);
  if (name == "logit") return read_number(name, value, options.logit);
  if (name == "noise") return read_noise(value, options.noise);
  if (name == "sources") return read_sources(value, options.sources);
  if (name == "dtype") {
    if (value.is_string()) options.dtype = value.get<std::string>();
    if (mantissa_bits(options.dtype)) return {};
    return invalid(fmt::format("option dtype is {}, expected \"fp32\", \"fp16\" or \"bf16\"", shown(value)));
  }
  return {};  // of a host that knows more
}

}  // namespace

Result<ComparatorOptions> parse_options(assay_str options) {
  ComparatorOptions parsed;
  if (options.size == 0) return parsed;
  const Json object = Json::parse(sdk::text(options), nullptr, false);
  if (!object.is_object()) {
    return invalid(fmt::format("options {}: expected a JSON object", text::quoted(sdk::text(options), kShown)));
  }
  for (const auto& [name, value] : object.items()) {
    if (Status status = read_member(name, value, parsed); !status.ok()) return status;
  }
  return parsed;
}

Status refuse_tolerance(const ComparatorOptions& options, std::string_view metric) {
  if (!options.tolerance) return {};
  return invalid(
      fmt::format("{} takes no option \"tolerance\" ({:g} given): it is exact; remove it from "
                  "ASSAY.tolerance",
                  metric, *options.tolerance));
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
