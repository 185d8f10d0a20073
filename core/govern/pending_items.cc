#include <algorithm>
#include <filesystem>

#include "core/govern/accept.h"
#include "core/govern/record.h"
#include "core/govern/review.h"

namespace assay::govern {
namespace {

namespace fs = std::filesystem;

// Compares with the golden that judges, else with the nearest one.
Status compare_item(PendingItem& item, const compare::ComparatorLookup& lookup) {
  const PendingGolden& pending = item.pending;
  const auto judging = judging_golden(pending);
  if (!judging) return judging.status();
  item.first = judging->empty();
  const auto digest = golden_digest(*judging);
  if (!digest) return digest.status();
  if (*digest != pending.info.golden_sha256) {
    item.stale =
        "the golden " + std::string(item.first ? "vanished" : "changed") + " after this was recorded; record again";
  }
  const auto options = judge_options(item.test, lookup);
  if (!options) return options.status();
  const auto nearest =
      item.first ? nearest_golden(item.test, pending.name.environment, pending.name.platform) : std::optional(*judging);
  ResultSet golden;
  if (nearest) {
    auto read = read_results(*nearest);
    if (!read) return read.status();
    golden = *std::move(read);
  }
  const Provenance* made = pending.meta.provenance ? &*pending.meta.provenance : nullptr;
  item.drift = drift_of(
      {.options = &*options, .golden = nearest ? &golden : nullptr, .recorded = &pending.results, .provenance = made});
  return {};
}

}  // namespace

Result<std::vector<PendingItem>> pending_items(const std::vector<TestCase>& cases, const std::string& pending_dir,
                                               const compare::ComparatorLookup& lookup) {
  std::vector<PendingItem> items;
  for (const TestCase& test : cases) {
    const auto paths = list_pending(pending_folder(test.dir, pending_dir));
    if (!paths) return paths.status();
    for (const std::string& path : *paths) {
      PendingItem item;
      item.test = test;
      auto pending = read_pending(path, test.dir);
      item.error = pending ? Status() : pending.status();
      if (pending) {
        item.pending = *std::move(pending);
        item.error = compare_item(item, lookup);
      }
      item.pending.path = path;
      items.push_back(std::move(item));
    }
  }
  return items;
}

std::vector<std::string> changed_metrics(const PendingItem& item) {
  std::vector<std::string> metrics;
  for (const MetricDrift& metric : item.drift.metrics) {
    if (metric.metric == compare::kRequestsMetric && metric.changed) return {kAllMetrics};
    // A first golden takes all that its case asks for, also what equals the golden it was seeded from.
    const bool wanted = metric.changed || (item.first && metric.listed);
    if (wanted) metrics.push_back(metric.metric);
  }
  if (item.pending.meta.noise) metrics.emplace_back(kNoiseMetric);
  return metrics;
}

}  // namespace assay::govern
