#include "core/metamorphic/judge_pair.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "core/compare/same_results.h"

namespace assay::metamorphic {
namespace {

Sides judged_asks(const Way& way, const WayResult& reference, const WayResult& result) {
  Sides sides;
  for (const Call& call : way.calls) {
    for (const Ask& ask : call.asks) {
      if (!ask.judged) continue;
      if (const RequestRecord* record = reference.find(ask.id)) sides.reference.push_back(*record);
      if (const RequestRecord* record = result.find(ask.id)) sides.changed.push_back(*record);
    }
  }
  const auto by_id = [](const RequestRecord& a, const RequestRecord& b) { return request_id_less(a.id, b.id); };
  std::sort(sides.reference.begin(), sides.reference.end(), by_id);
  std::sort(sides.changed.begin(), sides.changed.end(), by_id);
  return sides;
}

bool ended_at_once(const RequestRecord& record) { return record.tokens && record.tokens->empty(); }

// Requests that end before their first token in both ways agree, and say no more; comparators take an empty list for
// a broken one. Returns their number.
size_t drop_ended(Sides* sides) {
  std::set<std::string, std::less<>> ended;
  for (const RequestRecord& record : sides->reference) {
    if (ended_at_once(record)) ended.insert(record.id);
  }
  std::set<std::string, std::less<>> in_both;
  for (const RequestRecord& record : sides->changed) {
    if (ended_at_once(record) && ended.count(record.id) > 0) in_both.insert(record.id);
  }
  const auto drop = [&](const RequestRecord& record) { return in_both.count(record.id) > 0; };
  std::erase_if(sides->reference, drop);
  std::erase_if(sides->changed, drop);
  return in_both.size();
}

// True when a record on either side has the field.
template <class Has>
bool any_has(const Sides& sides, Has has) {
  return std::any_of(sides.reference.begin(), sides.reference.end(), has) ||
         std::any_of(sides.changed.begin(), sides.changed.end(), has);
}

// Texts that both sides leave empty (special tokens alone) would be taken for broken ones.
bool empty_texts(const Sides& sides) {
  for (size_t i = 0; i < std::min(sides.reference.size(), sides.changed.size()); ++i) {
    const auto& a = sides.reference[i].text;
    const auto& b = sides.changed[i].text;
    if (a && b && a->empty() && b->empty()) return true;
  }
  return false;
}

std::vector<std::string> metrics_of(const RelationInput& input, const Experiment& experiment, const Changed& changed,
                                    const Sides& sides) {
  const uint64_t can =
      input.laboratory->capabilities("").value_or(0) & input.laboratory->capabilities(changed.way.engine).value_or(0);
  std::vector<std::string> metrics;
  if (experiment.tokens && (can & ASSAY_CAP_TOKENS) != 0) metrics.emplace_back("generated_tokens");
  const bool texts = any_has(sides, [](const RequestRecord& r) { return r.text.has_value(); });
  if (experiment.texts && texts && (can & ASSAY_CAP_TEXT) != 0 && !empty_texts(sides)) {
    metrics.emplace_back("generated_text");
  }
  if ((can & ASSAY_CAP_LOGPROBS) != 0) metrics.emplace_back("logprobs");
  if (input.top_n && (can & ASSAY_CAP_TOP_N) != 0) metrics.emplace_back("top_n_logprobs");
  const bool routed = any_has(sides, [](const RequestRecord& r) { return r.routing.has_value(); });
  if (input.routing && routed && (can & ASSAY_CAP_ROUTING) != 0) metrics.emplace_back("routing_indices");
  return metrics;
}

ResultSet set_of(std::vector<RequestRecord> records, const std::string& path, const Provenance* provenance) {
  ResultSet set;
  set.requests = std::move(records);
  set.path = path;
  set.form = GoldenForm::kStatic;
  if (provenance != nullptr) {
    GoldenMeta meta;
    meta.provenance = *provenance;
    set.extra = to_json(meta);
  }
  return set;
}

// Equal bits alone pass.
void demand_equal_bits(const ResultSet& reference, const ResultSet& changed, CaseVerdict* verdict) {
  if (!passes(verdict->verdict)) return;
  const std::string difference = compare::first_difference(reference, changed);
  if (difference.empty() && verdict->verdict == Verdict::kIdentical) return;
  Finding finding;
  finding.verdict = Verdict::kDrift;
  finding.differing = 1;
  finding.message = difference.empty() ? "equal within tolerance, but equal bits are declared" : difference;
  verdict->reason = finding.message;
  verdict->verdict = Verdict::kDrift;
  verdict->metrics.push_back({"equal_bits", Verdict::kDrift, {std::move(finding)}});
}

}  // namespace

Verdict verdict_of_way(StatusCode code) {
  switch (code) {
    case StatusCode::kNotFound:
    case StatusCode::kUnsupported:
      return Verdict::kNotComparable;
    case StatusCode::kInvalid:
      return Verdict::kInvalid;
    case StatusCode::kInfra:
    case StatusCode::kCancelled:
      return Verdict::kInfra;
    default:
      return Verdict::kCrashed;
  }
}

std::optional<CaseVerdict> verdict_of_failures(const std::vector<FailedAsk>& failed) {
  if (failed.empty()) return std::nullopt;
  const FailedAsk& first = failed.front();
  std::string reason = fmt::format("request {}: {}", first.id, first.message);
  if (failed.size() > 1) reason += fmt::format(" ({} requests failed)", failed.size());
  return CaseVerdict{first.code == StatusCode::kInfra ? Verdict::kInfra : Verdict::kInvalid, reason, "", {}};
}

PairVerdict judge_pair(const RelationInput& input, const Experiment& experiment, const Changed& changed,
                       const WayResult& reference, const WayResult& result, compare::Rerun* rerun) {
  PairVerdict pair;
  pair.name = changed.way.name;
  const uint64_t level = info_of(input.relation).level;
  pair.exact = (reference.determinism & result.determinism & level) != 0;
  Sides sides = changed.assemble ? changed.assemble(reference, result) : judged_asks(changed.way, reference, result);
  pair.requests = std::max(sides.reference.size(), sides.changed.size());
  const size_t ended = drop_ended(&sides);
  if (sides.reference.empty() && sides.changed.empty()) {
    pair.verdict = {Verdict::kNotComparable,
                    fmt::format("no tokens to compare: {} requests ended before their first one", ended),
                    "",
                    {}};
    return pair;
  }
  compare::JudgeOptions options;
  options.metrics = metrics_of(input, experiment, changed, sides);
  options.capabilities = input.laboratory->capabilities(changed.way.engine);
  options.lookup = input.lookup;
  for (const std::string& metric : options.metrics) {
    const auto given = input.tolerances.find(metric);
    if (metric == "generated_tokens" || metric == "generated_text") continue;
    if (pair.exact) options.tolerances[metric] = 0;
    if (!pair.exact && given != input.tolerances.end()) options.tolerances[metric] = given->second;
  }
  pair.reference = set_of(std::move(sides.reference), input.reference_path, input.provenance);
  pair.changed = set_of(std::move(sides.changed), input.changed_path, input.provenance);
  pair.verdict = compare::judge_case({.options = &options,
                                      .golden = &*pair.reference,
                                      .golden_missing = "",
                                      .actual = &*pair.changed,
                                      .rerun = pair.exact || !input.greedy ? nullptr : rerun,
                                      .no_rerun = pair.exact ? "equal bits are declared: nothing excuses a difference"
                                                             : "this way cannot be run again",
                                      .provenance = input.provenance});
  if (pair.exact) demand_equal_bits(*pair.reference, *pair.changed, &pair.verdict);
  for (const MetricVerdict& metric : pair.verdict.metrics) {
    for (const Finding& finding : metric.findings) pair.values += finding.note ? 0 : finding.compared;
  }
  return pair;
}

}  // namespace assay::metamorphic
