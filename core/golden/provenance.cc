#include "assay/provenance.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <tuple>

#include "core/golden/json_reason.h"
#include "core/golden/whole_number.h"

namespace assay {
namespace {

using Json = nlohmann::ordered_json;

// The members of Provenance, once for reading, writing and comparing.
template <class Object, class Visit>
void visit_members(Object& p, Visit&& visit) {
  visit("run_id", p.run_id);
  visit("recorded_at", p.recorded_at);
  visit("assay_version", p.assay_version);
  visit("engine", p.engine);
  visit("engine_version", p.engine_version);
  visit("engine_build", p.engine_build);
  visit("backend", p.backend);
  visit("backend_version", p.backend_version);
  visit("backend_build", p.backend_build);
  visit("weights_sha256", p.weights_sha256);
  visit("tokenizer_sha256", p.tokenizer_sha256);
  visit("dtype", p.dtype);
  visit("device", p.device);
  visit("driver", p.driver);
  visit("platform", p.platform);
  visit("schedule", p.schedule);
}

std::string dump(const Json& json) { return json.dump(-1, ' ', true, Json::error_handler_t::replace); }

Json json_of(const Provenance& provenance) {
  Json json = Json::object();
  visit_members(provenance, [&](const char* name, const std::string& value) {
    if (!value.empty()) json[name] = value;
  });
  if (!provenance.facts.empty()) json["facts"] = provenance.facts;
  return json;
}

Provenance provenance_in(const Json& json) {
  Provenance provenance;
  visit_members(provenance, [&](const char* name, std::string& value) { value = json.value(name, std::string()); });
  provenance.facts = json.value("facts", provenance.facts);
  return provenance;
}

Json json_of(const NoiseModel& noise) {
  Json metrics = Json::object();
  for (const auto& [name, of] : noise.metrics) {
    metrics[name] = {{"max", of.max}, {"p99", of.p99}, {"relative", of.relative}, {"samples", of.samples}};
  }
  return {{"repeats", noise.repeats},
          {"measured_at", noise.measured_at},
          {"device", noise.device},
          {"shapes", noise.shapes},
          {"metrics", metrics}};
}

// Beyond this, noise excuses everything: nothing could be told from anything.
double most_noise(const std::string& metric) {
  constexpr double kNats = 2;     // a tie of experts that fell otherwise was seen to move a logprob by 0.8
  constexpr double kScore = 0.5;  // router scores are below 1
  if (metric.find("logprobs") != std::string::npos) return kNats;
  return metric == "routing_indices" ? kScore : std::numeric_limits<double>::infinity();
}

// What a measurement cannot be, or cannot judge with, one line; empty: nothing.
std::string useless_noise(const NoiseModel& noise) {
  constexpr double kRelative = 10;  // of repeats on a busy machine
  for (const auto& [metric, of] : noise.metrics) {
    const double most = most_noise(metric);
    for (const auto& [name, value, limit] :
         {std::tuple("max", of.max, most), {"p99", of.p99, most}, {"relative", of.relative, kRelative}}) {
      if (!std::isfinite(value) || value < 0) {
        return fmt::format("noise of {}: {} is {}, expected a finite number >= 0", metric, name, value);
      }
      if (value <= limit) continue;
      return fmt::format(
          "noise of {}: {} is {}, more than {}: nothing could be told from anything; measure again with 'assay "
          "calibrate'",
          metric, name, value, limit);
    }
  }
  return "";
}

NoiseModel noise_in(const Json& json) {
  NoiseModel noise;
  noise.repeats = json::whole(json, "repeats", noise.repeats);
  noise.measured_at = json.value("measured_at", "");
  noise.device = json.value("device", "");
  noise.shapes = json.value("shapes", noise.shapes);
  const Json metrics = json.value("metrics", Json::object());
  for (const auto& [name, of] : metrics.items()) {
    noise.metrics[name] = {of.value("max", 0.0), of.value("p99", 0.0), of.value("relative", 0.0),
                           json::whole(of, "samples", uint64_t{0})};
  }
  return noise;
}

Json json_of(const Acceptance& accepted) {
  return {{"metric", accepted.metric},
          {"who", accepted.who},
          {"when", accepted.when},
          {"why", accepted.why},
          {"run_id", accepted.run_id}};
}

Acceptance acceptance_in(const Json& json) {
  return {json.value("metric", ""), json.value("who", ""), json.value("when", ""), json.value("why", ""),
          json.value("run_id", "")};
}

// Runs `read` over the parsed text; what nlohmann throws becomes one line.
template <class T, class Read>
Result<T> parsed(std::string_view text, const char* what, Read&& read) {
  try {
    const Json json = Json::parse(text);
    if (!json.is_object()) return invalid(fmt::format("{}: expected a JSON object, got {}", what, json.type_name()));
    return read(json);
  } catch (const Json::exception& failure) {
    return invalid(fmt::format("{}: {}", what, json::reason_of(failure.what())));
  }
}

}  // namespace

Result<GoldenMeta> parse_golden_meta(std::string_view text) {
  if (text.empty()) return GoldenMeta();
  return parsed<GoldenMeta>(text, "object \"assay\" of the golden", [](const Json& json) -> Result<GoldenMeta> {
    GoldenMeta meta;
    for (const auto& [name, value] : json.items()) {
      if (name == "provenance") {
        meta.provenance = provenance_in(value);
      } else if (name == "noise") {
        meta.noise = noise_in(value);
        if (const std::string wrong = useless_noise(*meta.noise); !wrong.empty()) {
          return invalid("object \"assay\" of the golden: " + wrong);
        }
      } else if (name == "accepted") {
        for (const Json& entry : value) meta.accepted.push_back(acceptance_in(entry));
      } else {
        meta.further.emplace_back(name, dump(value));
      }
    }
    return meta;
  });
}

std::string to_json(const GoldenMeta& meta) {
  Json json = Json::object();
  if (meta.provenance) json["provenance"] = json_of(*meta.provenance);
  if (meta.noise) json["noise"] = json_of(*meta.noise);
  for (const Acceptance& accepted : meta.accepted) json["accepted"].push_back(json_of(accepted));
  for (const auto& [name, text] : meta.further) json[name] = Json::parse(text);
  return json.empty() ? "" : dump(json);
}

std::string to_json(const Provenance& provenance) { return dump(json_of(provenance)); }

Result<Provenance> parse_provenance(std::string_view text) {
  return parsed<Provenance>(text, "provenance", provenance_in);
}

std::vector<std::string> provenance_differences(const Provenance& golden, const Provenance& result) {
  std::vector<std::pair<std::string, std::string>> before;
  visit_members(golden, [&](const char* name, const std::string& value) { before.emplace_back(name, value); });
  std::vector<std::string> lines;
  size_t i = 0;
  visit_members(result, [&](const char* name, const std::string& value) {
    const auto& [known, old] = before[i++];
    if (known == "run_id" || known == "recorded_at" || old.empty() || value.empty() || old == value) return;
    lines.push_back(fmt::format("{}: golden {}, result {}", name, old, value));
  });
  for (const auto& [name, old] : golden.facts) {
    const auto now = result.facts.find(name);
    if (now == result.facts.end() || now->second == old) continue;
    lines.push_back(fmt::format("facts.{}: golden {}, result {}", name, old, now->second));
  }
  return lines;
}

}  // namespace assay
