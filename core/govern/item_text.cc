#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/golden/text.h"
#include "core/govern/accept.h"
#include "core/govern/review.h"

namespace assay::govern {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr size_t kShownTexts = 3;

void append_metrics(std::string& out, const Drift& drift) {
  out += fmt::format("  {:<22} {:<15} {:>15} {:>11} {:>11}  {}\n", "metric", "verdict", "differing", "max |d|",
                     "passes at", "proposed");
  for (const MetricDrift& metric : drift.metrics) {
    out += fmt::format("  {:<22} {:<15} {:>15} {:>11.3g} {:>11.3g}  {}{}\n", text::printable(metric.metric),
                       to_string(metric.verdict), fmt::format("{}/{}", metric.differing, metric.compared),
                       metric.max_abs_difference, metric.smallest_passing_tolerance, to_string(metric.proposal),
                       metric.listed || metric.metric == compare::kRequestsMetric ? "" : " (not in METRICS)");
  }
}

void append_texts(std::string& out, const Drift& drift, size_t limit) {
  for (size_t i = 0; i < std::min(limit, drift.texts.size()); ++i) {
    const TextChange& change = drift.texts[i];
    out += fmt::format("  request {}{}\n", text::printable(change.request),
                       change.token < 0 ? "" : fmt::format(", from generated token {}", change.token));
    if (!change.before.empty()) out += fmt::format("    - golden   {}\n", text::printable(change.before));
    out += fmt::format("    + recorded {}\n", text::printable(change.after));
  }
  if (drift.texts.size() > limit) out += fmt::format("  and {} requests more\n", drift.texts.size() - limit);
}

void append_noise(std::string& out, const NoiseModel& noise) {
  for (const auto& [metric, of] : noise.metrics) {
    out += fmt::format("  noise of {}: max {:.3g}, p99 {:.3g}, relative {:.3g} in {} values of {} repeats on {}\n",
                       text::printable(metric), of.max, of.p99, of.relative, of.samples, noise.repeats,
                       text::printable(noise.device));
  }
}

void append_findings(std::string& out, const CaseVerdict& verdict) {
  for (const MetricVerdict& metric : verdict.metrics) {
    for (const Finding& finding : metric.findings) {
      if (finding.verdict == Verdict::kIdentical && !finding.note) continue;
      out += fmt::format("  {} {}: {}\n", text::printable(metric.metric), text::printable(finding.request),
                         text::printable(finding.message));
    }
  }
}

Json json_of(const MetricDrift& metric) {
  return {{"metric", metric.metric},
          {"listed", metric.listed},
          {"changed", metric.changed},
          {"proposal", to_string(metric.proposal)},
          {"verdict", to_string(metric.verdict)},
          {"compared", metric.compared},
          {"differing", metric.differing},
          {"max_abs_difference", metric.max_abs_difference},
          {"smallest_passing_tolerance", metric.smallest_passing_tolerance},
          {"message", metric.message}};
}

Json json_of(const PendingItem& item) {
  const PendingGolden& pending = item.pending;
  Json json = {{"case", item.test.name},
               {"path", item.test.dir},
               {"pending", pending.path},
               {"error", item.error.ok() ? Json() : Json(item.error.message())}};
  if (!item.error.ok()) return json;
  json["golden"] = pending.golden_path;
  json["first"] = item.first;
  json["compared_with"] = item.drift.golden;
  json["stale"] = item.stale.empty() ? Json() : Json(item.stale);
  json["recorded_at"] = pending.info.recorded_at;
  json["run_id"] = pending.info.run_id;
  json["command"] = pending.info.command;
  json["proposal"] = to_string(item.drift.proposal);
  json["verdict"] = to_string(item.drift.verdict.verdict);
  json["reason"] = item.drift.verdict.reason;
  json["metrics"] = Json::array();
  for (const MetricDrift& metric : item.drift.metrics) json["metrics"].push_back(json_of(metric));
  json["texts"] = Json::array();
  for (const TextChange& text : item.drift.texts) {
    json["texts"].push_back({{"request", text.request},
                             {"first_divergent_token", text.token},
                             {"golden", text.before},
                             {"recorded", text.after}});
  }
  json["environment"] = item.drift.environment;
  json["accept"] = changed_metrics(item);
  return json;
}

}  // namespace

std::string item_text(const PendingItem& item, bool details) {
  const PendingGolden& pending = item.pending;
  std::string out = fmt::format("{}: {}\n", text::printable(item.test.name), text::printable(pending.path));
  if (!item.error.ok()) return out + fmt::format("  cannot be reviewed: {}\n", text::printable(item.error.message()));
  out += fmt::format("  recorded {} by run {}\n", text::printable(pending.info.recorded_at),
                     text::printable(pending.info.run_id));
  if (!item.stale.empty()) out += fmt::format("  STALE: {}\n", text::printable(item.stale));
  const std::string compared = fs::path(item.drift.golden).filename().string();
  if (item.first) {
    out += fmt::format("  first golden for {} {}; {}\n", pending.name.environment, pending.name.platform,
                       compared.empty() ? "there is none to compare with" : "compared with the nearest, " + compared);
  } else if (fs::path(pending.golden_path).filename() != compared) {
    out += fmt::format("  {} judges so far; accepting makes a golden for {} {} alone\n", compared,
                       pending.name.environment, pending.name.platform);
  }
  out += fmt::format("  proposed: {}. Against {} this would be {}: {}\n", to_string(item.drift.proposal),
                     compared.empty() ? "itself" : compared, to_string(item.drift.verdict.verdict),
                     text::printable(item.drift.verdict.reason));
  append_metrics(out, item.drift);
  append_texts(out, item.drift, details ? item.drift.texts.size() : kShownTexts);
  for (const std::string& line : item.drift.environment) out += fmt::format("  {}\n", text::printable(line));
  if (pending.meta.noise) append_noise(out, *pending.meta.noise);
  if (details) append_findings(out, item.drift.verdict);
  return out;
}

std::string items_json(const std::vector<PendingItem>& items) {
  Json array = Json::array();
  for (const PendingItem& item : items) array.push_back(json_of(item));
  return array.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace assay::govern
