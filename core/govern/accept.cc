#include "core/govern/accept.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "core/compare/checks.h"
#include "core/golden/replace_file.h"
#include "core/golden/stable_text.h"
#include "core/golden/text.h"
#include "core/govern/drift.h"
#include "core/govern/merge.h"
#include "core/govern/metric_part.h"

namespace assay::govern {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLongestReason = 2000;  // code points

bool names(const std::vector<std::string>& metrics, std::string_view metric) {
  return std::find(metrics.begin(), metrics.end(), metric) != metrics.end();
}

Status check_request(const PendingGolden& pending, const AcceptRequest& request) {
  if (request.metrics.empty()) return invalid("name what is accepted: --metric M, or --all");
  if (text::blank(request.why)) return invalid("a golden changes only with a reason: --reason TEXT");
  if (const size_t length = text::count(request.why); length > kLongestReason) {
    return invalid(
        fmt::format("the reason has {} characters, a golden keeps at most {}; say it shortly and name the "
                    "issue that tells the rest",
                    length, kLongestReason));
  }
  if (text::blank(request.who)) return invalid("nobody's name is known: --who NAME");
  if (names(request.metrics, kNoiseMetric) && !pending.meta.noise) {
    return invalid(pending.path + " holds no noise model; 'assay calibrate --write' measures one");
  }
  return {};
}

Status check_unchanged(const PendingGolden& pending, const std::string& case_dir) {
  const auto now = read_pending(pending.path, case_dir);
  if (!now) return now.status();
  if (pending_text(*now) == pending_text(pending)) return {};
  return invalid(pending.path + ": recorded anew since it was read; look at it again");
}

// The golden as it is now.
struct Present {
  std::string digest;  // of the bytes of the file that will be written; empty: there is none yet
  ResultSet set;       // what judges now: that file, else the golden of any platform; empty: none
  GoldenMeta meta;     // of `set`
};

Result<Present> read_present(const PendingGolden& pending) {
  Present present;
  auto digest = digest_if_present(pending.golden_path);
  if (!digest) return digest.status();
  present.digest = *std::move(digest);
  const auto judging = judging_golden(pending);
  if (!judging) return judging.status();
  const auto says = golden_digest(*judging);
  if (!says) return says.status();
  if (*says != pending.info.golden_sha256) {
    return invalid(fmt::format("{}: the golden {} after this was recorded; record again",
                               judging->empty() ? pending.golden_path : *judging,
                               judging->empty()                     ? "vanished"
                               : pending.info.golden_sha256.empty() ? "appeared"
                                                                    : "changed"));
  }
  present.set.path = pending.golden_path;
  if (judging->empty()) return present;
  auto set = read_results(*judging);
  if (!set) return set.status();
  auto meta = parse_golden_meta(set->extra);
  if (!meta) return meta.status().with(*judging);
  present.set = *std::move(set);
  present.meta = *std::move(meta);
  return present;
}

// METRICS that need no values of their own: the noise model alone.
std::vector<std::string> value_metrics(const std::vector<std::string>& metrics) {
  std::vector<std::string> values;
  for (const std::string& metric : metrics) {
    if (metric != kNoiseMetric) values.push_back(metric);
  }
  return values;
}

void sign(const PendingGolden& pending, const AcceptRequest& request, GoldenMeta& meta) {
  const bool whole = names(request.metrics, kAllMetrics);
  if (!value_metrics(request.metrics).empty() && pending.meta.provenance) meta.provenance = pending.meta.provenance;
  if (pending.meta.noise && (whole || names(request.metrics, kNoiseMetric))) meta.noise = pending.meta.noise;
  for (const std::string& metric : whole ? std::vector<std::string>{kAllMetrics} : request.metrics) {
    meta.accepted.push_back({metric, request.who, request.when, request.why, pending.info.run_id});
  }
}

// What is still to be accepted once the golden says `golden`.
std::vector<std::string> remaining_metrics(const compare::JudgeOptions& options, const PendingGolden& pending,
                                           const ResultSet& golden) {
  const Drift drift = drift_of({.options = &options, .golden = &golden, .recorded = &pending.results});
  std::vector<std::string> remaining;
  for (const MetricDrift& metric : drift.metrics) {
    if (metric.changed) remaining.push_back(metric.metric);
  }
  return remaining;
}

// The pending file goes when nothing is left of it, else it is now beside the new golden.
Status settle_pending(PendingGolden pending, bool noise_taken, const std::vector<std::string>& remaining) {
  if (remaining.empty()) {
    std::error_code error;
    if (!fs::remove(pending.path, error) && error) {
      return infra(fmt::format("{}: accepted, but the pending file stays: {}", pending.path, error.message()));
    }
    return {};
  }
  auto digest = golden_digest(pending.golden_path);  // which judges from now on
  if (!digest) return digest.status();
  pending.info.golden_sha256 = *std::move(digest);
  if (noise_taken) pending.meta.noise.reset();
  return replace_file(pending.path, pending_text(pending), Durability::kPower);
}

}  // namespace

Result<Accepted> accept(const TestCase& test, const PendingGolden& pending, const AcceptRequest& request,
                        const compare::ComparatorLookup& lookup) {
  if (Status status = check_request(pending, request); !status.ok()) return status;
  const auto lock = FolderLock::take(test.dir);
  if (!lock) return lock.status();
  if (Status status = check_unchanged(pending, test.dir); !status.ok()) return status;
  auto present = read_present(pending);
  if (!present) return present.status();
  const std::vector<std::string> values = value_metrics(request.metrics);
  if (values.empty() && present->set.requests.empty()) {
    return invalid(pending.golden_path +
                   ": there is no golden that the noise could belong to; accept its values first");
  }
  auto merged = values.empty() ? Result<ResultSet>(present->set) : merge(present->set, pending.results, values);
  if (!merged) return merged.status();
  if (const auto faults = compare::nonfinite_values("pending golden", *merged); !faults.empty()) {
    return invalid(fmt::format("request {}: {}", faults.front().request, faults.front().message));
  }
  const bool says_text = std::any_of(
      values.begin(), values.end(), [](const auto& metric) { return metric == kAllMetrics || follows_tokens(metric); });
  if (says_text) {
    // The pending text decides, also where its tokens alone are accepted: they say the same.
    if (Status status = check_known_completion(test, present->set, pending.results); !status.ok()) return status;
  }
  const auto options = judge_options(test, lookup);
  if (!options) return options.status();
  if (Status status = check_can_judge(*options, *merged); !status.ok() && !values.empty()) return status;
  sign(pending, request, present->meta);
  merged->extra = to_json(present->meta);

  const bool noise_taken = names(request.metrics, kNoiseMetric) || names(request.metrics, kAllMetrics);
  std::vector<std::string> remaining = remaining_metrics(*options, pending, *merged);
  if (pending.meta.noise && !noise_taken) remaining.emplace_back(kNoiseMetric);

  Status written = replace_unchanged(pending.golden_path, present->digest, stable_text(*merged));
  if (!written.ok()) return written;
  Accepted accepted{.golden = pending.golden_path,
                    .created = present->digest.empty(),
                    .metrics = request.metrics,
                    .remaining = std::move(remaining)};
  if (Status status = settle_pending(pending, noise_taken, accepted.remaining); !status.ok()) return status;
  return accepted;
}

Status reject(const std::string& pending_path) {
  std::error_code error;
  if (fs::remove(pending_path, error)) return {};
  if (error) return infra(fmt::format("{}: cannot be removed: {}", pending_path, error.message()));
  return not_found(pending_path + ": no such pending golden");
}

}  // namespace assay::govern
