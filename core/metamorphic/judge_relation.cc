#include "core/metamorphic/judge_relation.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "core/metamorphic/experiment.h"
#include "core/metamorphic/judge_pair.h"
#include "core/metamorphic/workload.h"

namespace assay::metamorphic {
namespace {

constexpr size_t kProbed = 33;  // prompts of a case that are looked at, or as many as the largest batch has

const char* level_name(uint64_t level) { return level == ASSAY_CAP_L1 ? "L1" : level == ASSAY_CAP_L2 ? "L2" : "L3"; }

std::string plural(size_t n, const char* one) { return fmt::format("{} {}{}", n, one, n == 1 ? "" : "s"); }

class Judge {
 public:
  explicit Judge(const RelationInput& input) : input_(input), info_(info_of(input.relation)) {}

  RelationOutcome run() {
    if (Status checked = check(input_.parameters); !checked.ok()) return ended(Verdict::kInvalid, checked.message());
    if (input_.max_positions > 0 && input_.parameters.new_tokens >= input_.max_positions) {
      return ended(Verdict::kInvalid,
                   fmt::format("ASSAY.metamorphic.new_tokens is {}, which leaves no room for a prompt "
                               "in the model's {} positions; lower it",
                               input_.parameters.new_tokens, input_.max_positions));
    }
    size_t most = kProbed;
    for (const int32_t batch : input_.parameters.batches) most = std::max(most, static_cast<size_t>(batch));
    Result<Probe> probe = probe_prompts(input_.prompts, most, *input_.laboratory);
    if (!probe) return ended(verdict_of_way(probe.status().code()), probe.status().message());
    if (std::optional<CaseVerdict> failed = verdict_of_failures(probe->failed)) {
      return ended(failed->verdict, failed->reason);
    }
    const Workload workload(std::move(probe->prompts), input_.parameters, limit());
    const Setting setting{.workload = workload,
                          .parameters = input_.parameters,
                          .laboratory = *input_.laboratory,
                          .engine = input_.engine,
                          .greedy = input_.greedy};
    Experiment experiment = make_experiment(input_.relation, setting);
    if (!experiment.missing.empty()) return ended(Verdict::kNotComparable, experiment.missing);
    for (Trial& trial : experiment.trials) {
      if (std::optional<RelationOutcome> stopped = run_trial(setting, experiment, &trial)) return *std::move(stopped);
    }
    return outcome();
  }

 private:
  // nullopt: its pairs are judged; else the reference could not be used, and nothing can be said.
  std::optional<RelationOutcome> run_trial(const Setting& setting, const Experiment& experiment, Trial* trial) {
    settle_options(setting, &trial->reference);
    const Result<WayResult> reference = input_.laboratory->run(trial->reference);
    const std::string& name = trial->reference.name;
    if (!reference) {
      return ended(verdict_of_way(reference.status().code()), name + ": " + reference.status().message());
    }
    if (std::optional<CaseVerdict> failed = verdict_of_failures(reference->failed)) {
      return ended(failed->verdict, name + ": " + failed->reason);
    }
    const Seen seen = trial->untouched ? trial->untouched(*reference, *reference) : Seen{true, ""};
    if (!seen.fired) return ended(Verdict::kNotComparable, name + ": " + seen.what);
    for (Changed& changed : trial->changed) pairs_.push_back(judge(setting, experiment, *reference, &changed));
    return std::nullopt;
  }

  // Tokens of the longest prompt: there is room for the new tokens, and for one that is asked for behind these.
  int64_t limit() const {
    return input_.max_positions > 0 ? std::max<int64_t>(1, input_.max_positions - input_.parameters.new_tokens) : 0;
  }

  RelationOutcome ended(Verdict verdict, const std::string& reason) const {
    RelationOutcome made;
    made.verdict = {verdict, fmt::format("{}: {}", info_.name, reason), "", {}};
    return made;
  }

  PairVerdict judge(const Setting& setting, const Experiment& experiment, const WayResult& reference,
                    Changed* changed) {
    if (changed->follow) changed->way.calls = changed->follow(reference);
    settle_options(setting, &changed->way);
    const Result<WayResult> result = input_.laboratory->run(changed->way);
    PairVerdict pair;
    pair.name = changed->way.name;
    if (!result) {
      pair.verdict = {verdict_of_way(result.status().code()), result.status().message(), "", {}};
      return pair;
    }
    if (std::optional<CaseVerdict> failed = verdict_of_failures(result->failed)) {
      pair.verdict = *std::move(failed);
      return pair;
    }
    const bool alone = changed->way.calls.size() == 1 && !changed->assemble;
    const std::unique_ptr<compare::Rerun> rerun = alone ? input_.laboratory->rerun(changed->way) : nullptr;
    pair = judge_pair(input_, experiment, *changed, reference, *result, rerun.get());
    check_mechanism(*changed, reference, *result, &pair);
    return pair;
  }

  // Where it did not happen, equal results show nothing; others are told all the same.
  void check_mechanism(const Changed& changed, const WayResult& reference, const WayResult& result,
                       PairVerdict* pair) const {
    const Seen seen = changed.mechanism(reference, result);
    pair->mechanism = seen.what;
    if (seen.fired) return;
    const std::string remedy =
        info_.remedy.empty() ? "" : fmt::format(" (if sizes are why, {} in ASSAY.metamorphic)", info_.remedy);
    const bool differs = !passes(pair->verdict.verdict) && pair->verdict.verdict != Verdict::kNotComparable;
    pair->verdict.reason = differs ? fmt::format("{}{}; {} all the same: {}", seen.what, remedy,
                                                 to_string(pair->verdict.verdict), pair->verdict.reason)
                                   : seen.what + remedy;
    pair->verdict.verdict = Verdict::kNotComparable;
  }

  // One finding a pair: what was seen, and what came of it.
  MetricVerdict pairs_metric() const {
    MetricVerdict metric{std::string(info_.name), Verdict::kIdentical, {}};
    for (const PairVerdict& pair : pairs_) {
      Finding finding;
      finding.verdict = pair.verdict.verdict;
      finding.compared = pair.values;
      const bool equal = pair.verdict.verdict == Verdict::kIdentical;
      const std::string came = passes(pair.verdict.verdict)
                                   ? fmt::format("{}, {} equal{}", plural(pair.requests, "request"),
                                                 plural(pair.values, "value"), equal ? "" : " within tolerance")
                                   : pair.verdict.reason;
      finding.message =
          fmt::format("{}: {}{}{}", pair.name, came, pair.mechanism.empty() ? "" : "; mechanism: ", pair.mechanism);
      metric.verdict = worst(metric.verdict, finding.verdict);
      metric.findings.push_back(std::move(finding));
    }
    return metric;
  }

  // What pairs were judged by; "" where none was.
  std::string standard() const {
    bool judged = false;
    bool exact = true;
    for (const PairVerdict& pair : pairs_) {
      if (pair.requests == 0) continue;
      judged = true;
      exact = exact && pair.exact;
    }
    if (!judged) return "";
    return fmt::format("; {} is {}", level_name(info_.level),
                       exact ? "declared: equal bits alone pass" : "not declared: the usual tolerances hold");
  }

  std::string passing_reason(Verdict verdict) const {
    uint64_t values = 0;
    size_t requests = 0;
    double difference = 0;
    for (const PairVerdict& pair : pairs_) {
      values += pair.values;
      requests = std::max(requests, pair.requests);
      for (const MetricVerdict& metric : pair.verdict.metrics) {
        for (const Finding& finding : metric.findings) difference = std::max(difference, finding.max_abs_difference);
      }
    }
    const std::string how =
        verdict == Verdict::kIdentical ? "equal" : fmt::format("equal within tolerance, max |Δ| {:.3g}", difference);
    return fmt::format("{}, {}, {} {}{}", plural(pairs_.size(), "way"), plural(requests, "request"),
                       plural(values, "value"), how, standard());
  }

  RelationOutcome outcome() {
    RelationOutcome made;
    size_t shown = 0;
    size_t failing = 0;
    for (size_t i = 0; i < pairs_.size(); ++i) {
      const Verdict verdict = pairs_[i].verdict.verdict;
      failing += passes(verdict) ? 0 : 1;
      const bool worse = worst(verdict, pairs_[shown].verdict.verdict) != pairs_[shown].verdict.verdict;
      const bool equal_pass = passes(verdict) && verdict == pairs_[shown].verdict.verdict;
      if (worse || equal_pass) shown = i;
    }
    PairVerdict& pair = pairs_[shown];
    MetricVerdict overview = pairs_metric();
    const std::string others = others_fail(shown, failing);
    made.verdict = std::move(pair.verdict);
    for (MetricVerdict& metric : made.verdict.metrics) {
      for (Finding& finding : metric.findings) finding.message = pair.name + ": " + finding.message;
    }
    made.verdict.reason = passes(made.verdict.verdict)
                              ? passing_reason(made.verdict.verdict)
                              : fmt::format("{}: {}{}{}", pair.name, made.verdict.reason, others, standard());
    made.verdict.metrics.insert(made.verdict.metrics.begin(), std::move(overview));
    if (pair.reference) {
      made.verdict.golden = input_.reference_path;
      made.reference = *std::move(pair.reference);
      made.changed = *std::move(pair.changed);
    }
    return made;
  }

  // " (and 2 of 7 ways more: batches of 3 DIVERGED)": of the others that fail, the first with a verdict of its own.
  std::string others_fail(size_t shown, size_t failing) const {
    if (failing < 2) return "";
    const PairVerdict* first = nullptr;
    for (size_t i = 0; i < pairs_.size(); ++i) {
      if (i == shown || passes(pairs_[i].verdict.verdict)) continue;
      const bool another = pairs_[i].verdict.verdict != pairs_[shown].verdict.verdict;
      if (first == nullptr || (another && first->verdict.verdict == pairs_[shown].verdict.verdict)) first = &pairs_[i];
    }
    return fmt::format(" (and {} of {} ways more, as {}: {})", failing - 1, pairs_.size(), first->name,
                       to_string(first->verdict.verdict));
  }

  const RelationInput& input_;
  const RelationInfo& info_;
  std::vector<PairVerdict> pairs_;
};

}  // namespace

RelationOutcome judge_relation(const RelationInput& input) { return Judge(input).run(); }

}  // namespace assay::metamorphic
