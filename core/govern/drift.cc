#include "core/govern/drift.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/discover/input_path.h"
#include "core/golden/text.h"
#include "core/govern/metric_part.h"

namespace assay::govern {
namespace {

constexpr size_t kBefore = 60;  // code points shown around a difference
constexpr size_t kAfter = 60;

bool contains(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// METRICS, then what else both sides hold.
std::vector<std::string> judged_metrics(const DriftInput& input) {
  std::vector<std::string> names = input.options->metrics;
  if (input.golden == nullptr) return names;
  for (const std::string& metric : metrics_in(*input.golden)) {
    const bool known =
        std::any_of(names.begin(), names.end(), [&](const auto& name) { return part_of(name) == metric; });
    if (!known && !is_performance(metric) && has_metric(*input.recorded, metric)) names.push_back(metric);
  }
  return names;
}

// True when every request that parts does so at a near-tie, and one does.
bool near_ties_alone(const CaseVerdict& verdict) {
  size_t parted = 0;
  for (const RequestEvidence& evidence : verdict.evidence) {
    if (evidence.first_divergent < 0) continue;
    ++parted;
    const bool explained = evidence.reanchoring && evidence.reanchoring->explains();
    if (!explained && !(evidence.split && evidence.split->near_tie)) return false;
  }
  return parted > 0 && verdict.evidence.size() < kMaxEvidenceRequests;
}

Proposal proposal_of(Verdict verdict, bool near_ties) {
  switch (verdict) {
    case Verdict::kIdentical:
      return Proposal::kSame;
    case Verdict::kEquivalent:
      return near_ties ? Proposal::kTie : Proposal::kNoise;
    case Verdict::kDrift:
      return Proposal::kDrift;
    case Verdict::kDiverged:
      return near_ties ? Proposal::kTie : Proposal::kWrong;
    default:
      return Proposal::kWrong;
  }
}

void add_figures(const MetricVerdict& judged, MetricDrift& drift) {
  drift.verdict = judged.verdict;
  for (const Finding& finding : judged.findings) {
    if (finding.note) continue;
    drift.compared += finding.compared;
    drift.differing += finding.differing;
    drift.max_abs_difference = std::max(drift.max_abs_difference, finding.max_abs_difference);
    drift.smallest_passing_tolerance = std::max(drift.smallest_passing_tolerance, finding.smallest_passing_tolerance);
    if (drift.message.empty() && finding.verdict == judged.verdict) {
      drift.message =
          finding.request.empty() ? finding.message : fmt::format("request {}: {}", finding.request, finding.message);
    }
  }
}

MetricDrift metric_drift(const std::string& metric, const DriftInput& input, const CaseVerdict& verdict,
                         bool near_ties) {
  MetricDrift drift{.metric = metric, .listed = contains(input.options->metrics, metric)};
  const auto judged = std::find_if(verdict.metrics.begin(), verdict.metrics.end(),
                                   [&](const MetricVerdict& at) { return at.metric == metric; });
  if (judged != verdict.metrics.end()) add_figures(*judged, drift);
  const bool lacks = input.golden == nullptr || !has_metric(*input.golden, metric);
  if (lacks && has_metric(*input.recorded, metric)) {
    drift.changed = true;
    const bool broken = input.golden == nullptr && judged != verdict.metrics.end() && !passes(judged->verdict);
    drift.proposal = broken ? Proposal::kWrong : Proposal::kNew;
    if (!broken) drift.verdict = Verdict::kNotComparable;
    if (!broken) drift.message = "the golden has no values of this metric";
    return drift;
  }
  if (judged == verdict.metrics.end()) return drift;  // the requests themselves do not match
  if (input.golden == nullptr) {
    drift.proposal = proposal_of(drift.verdict, false);
    return drift;
  }
  if (is_performance(metric)) {
    drift.changed = !passes(drift.verdict);
  } else {
    drift.changed =
        drift.verdict != Verdict::kIdentical && !first_difference(*input.golden, *input.recorded, metric).empty();
  }
  drift.proposal = proposal_of(drift.verdict, near_ties && follows_tokens(metric));
  return drift;
}

// Findings under kRequestsMetric are about all metrics at once.
void add_requests(const CaseVerdict& verdict, Drift& drift) {
  const auto requests = std::find_if(verdict.metrics.begin(), verdict.metrics.end(),
                                     [](const MetricVerdict& at) { return at.metric == compare::kRequestsMetric; });
  if (requests == verdict.metrics.end() || passes(requests->verdict)) return;
  MetricDrift whole{.metric = std::string(compare::kRequestsMetric), .changed = true, .proposal = Proposal::kWrong};
  add_figures(*requests, whole);
  drift.metrics.insert(drift.metrics.begin(), std::move(whole));
}

// Where tokens change, so does all that was recorded with them, even if it does not judge (a text after its blank
// line).
void add_companions(const DriftInput& input, Drift& drift) {
  const bool tokens_change = std::any_of(drift.metrics.begin(), drift.metrics.end(), [](const MetricDrift& metric) {
    return metric.changed && metric.proposal != Proposal::kNew && follows_tokens(metric.metric);
  });
  if (!tokens_change || input.golden == nullptr) return;
  for (MetricDrift& metric : drift.metrics) {
    if (metric.changed || !follows_tokens(metric.metric)) continue;
    if (first_difference(*input.golden, *input.recorded, metric.metric).empty()) continue;
    metric.changed = true;
    metric.proposal = std::max(metric.proposal, Proposal::kNoise);
  }
}

int64_t first_divergent_token(const RequestRecord& a, const RequestRecord& b) {
  if (!a.tokens || !b.tokens || *a.tokens == *b.tokens) return -1;
  const size_t shared = std::min(a.tokens->size(), b.tokens->size());
  const auto end = a.tokens->begin() + static_cast<ptrdiff_t>(shared);
  return std::mismatch(a.tokens->begin(), end, b.tokens->begin()).first - a.tokens->begin();
}

// Where tokens differ and the texts do not tell it.
void show_tokens(const RequestRecord& before, const RequestRecord& after, TextChange& change) {
  const auto shown = [&](const std::vector<int32_t>& tokens) {
    const auto at = static_cast<size_t>(change.token);
    return at < tokens.size() ? fmt::format("token {}", tokens[at]) : std::string("no token");
  };
  change.before = shown(*before.tokens);
  change.after = shown(*after.tokens);
}

std::vector<TextChange> text_changes(const ResultSet* golden, const ResultSet& recorded) {
  std::vector<TextChange> changes;
  for (const RequestRecord& after : recorded.requests) {
    const RequestRecord* before = golden == nullptr ? nullptr : golden->find(after.id);
    const std::string old_text = before == nullptr ? "" : before->text.value_or("");
    const std::string new_text = after.text.value_or("");
    const int64_t token = before == nullptr ? -1 : first_divergent_token(*before, after);
    if (old_text == new_text && token < 0) continue;
    const size_t at = text::common_prefix(old_text, new_text);
    TextChange change{.request = after.id, .token = token};
    if (!old_text.empty()) change.before = text::around(old_text, at, kBefore, kAfter);
    change.after = text::around(new_text, at, kBefore, kAfter);
    if (old_text == new_text) show_tokens(*before, after, change);
    changes.push_back(std::move(change));
  }
  return changes;
}

}  // namespace

std::string_view to_string(Proposal proposal) {
  constexpr std::string_view kNames[] = {"same", "new", "noise", "tie", "drift", "wrong"};
  return kNames[static_cast<size_t>(proposal)];
}

bool Drift::changed() const {
  return std::any_of(metrics.begin(), metrics.end(), [](const MetricDrift& metric) { return metric.changed; });
}

Status check_has_golden(const TestCase& test) {
  if (!test.assay.metamorphic) return {};
  return unsupported(test.config +
                     ": ASSAY.metamorphic: the case is judged by relations between runs of its own and has "
                     "no golden; 'assay run' runs it");
}

Result<compare::JudgeOptions> judge_options(const TestCase& test, const compare::ComparatorLookup& lookup) {
  if (Status has = check_has_golden(test); !has.ok()) return has;
  compare::JudgeOptions options;
  if (test.metrics) options.metrics = *test.metrics;
  options.tolerances = test.assay.tolerance;
  options.known.enabled = test.assay.golden == GoldenKind::kKnownCompletion;
  for (const std::string& source : test.assay.known_completion) {
    auto path = discover::find_input(source, test.dir);
    if (!path) return path.status().with("ASSAY.known_completion");
    options.known.sources.push_back(*std::move(path));
  }
  options.lookup = lookup;
  return options;
}

Status check_can_judge(const compare::JudgeOptions& options, const ResultSet& set) {
  if (set.requests.empty()) return invalid("it holds no request: as a golden it could never pass");
  compare::JudgeOptions plain = options;
  plain.known.enabled = false;  // check_known_completion knows what was there before
  const CaseVerdict verdict =
      compare::judge_case({.options = &plain, .golden = &set, .golden_missing = "", .actual = &set});
  if (verdict.verdict != Verdict::kInvalid) return {};
  return invalid("as a golden it could never pass: " + verdict.reason);
}

Drift drift_of(const DriftInput& input) {
  Drift drift;
  drift.texts = text_changes(input.golden, *input.recorded);
  compare::JudgeOptions options = *input.options;
  options.metrics = judged_metrics(input);
  // Without a golden, the results are their own: they must keep the rules that hold for any (known completion, NaN).
  const ResultSet* golden = input.golden != nullptr ? input.golden : input.recorded;
  drift.verdict =
      compare::judge_case({.options = &options, .golden = golden, .golden_missing = "", .actual = input.recorded});
  if (input.golden == nullptr) {
    drift.verdict.golden.clear();
  } else {
    drift.golden = input.golden->path;
    const auto meta = parse_golden_meta(input.golden->extra);
    if (meta && meta->provenance && input.provenance != nullptr) {
      drift.environment = provenance_differences(*meta->provenance, *input.provenance);
    }
  }
  const bool near_ties = near_ties_alone(drift.verdict);
  for (const std::string& metric : options.metrics) {
    drift.metrics.push_back(metric_drift(metric, input, drift.verdict, near_ties));
  }
  add_companions(input, drift);
  add_requests(drift.verdict, drift);
  for (const MetricDrift& metric : drift.metrics) drift.proposal = std::max(drift.proposal, metric.proposal);
  return drift;
}

}  // namespace assay::govern
