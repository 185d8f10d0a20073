#include "core/train/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/golden/text.h"
#include "core/train/judge_metric.h"
#include "core/train/thresholds.h"

namespace assay::train {
namespace {

// The line a person should read first: of the worst metric.
std::string reason_of(const CaseVerdict& verdict) {
  for (const MetricVerdict& metric : verdict.metrics) {
    if (metric.verdict != verdict.verdict) continue;
    for (const Finding& found : metric.findings) {
      if (!found.note && found.verdict == metric.verdict) return metric.metric + ": " + found.message;
    }
  }
  return "";
}

// One that golden or run have in two spellings that differ cannot be judged.
MetricVerdict judge_named(const std::string& name, const MetricSet& golden, const MetricSet& actual,
                          const JudgeRules& rules) {
  for (const MetricSet* set : {&golden, &actual}) {
    const std::string seen = set->contradiction(name);
    if (seen.empty()) continue;
    Finding found;
    found.verdict = Verdict::kInvalid;
    found.message = fmt::format("in {} {}; leave one of them", set == &golden ? rules.reference : "the run", seen);
    return {.metric = name, .verdict = Verdict::kInvalid, .findings = {std::move(found)}};
  }
  return judge_metric(name, golden.find_alike(name), actual.find_alike(name), rules);
}

MetricSet after(const MetricSet& set, int64_t step) {
  MetricSet rest = set;
  for (Metric& metric : rest.metrics) {
    std::erase_if(metric.values, [step](const StepValue& value) { return value.step <= step; });
  }
  return rest;
}

}  // namespace

CaseVerdict judge(const MetricSet& golden, const MetricSet& actual, const JudgeRules& rules) {
  CaseVerdict verdict;
  const std::vector<std::string> written = rules.metrics ? *rules.metrics : default_metrics();
  if (written.empty()) {
    verdict.reason = "METRICS is empty: nothing would be compared; name metrics, for example lm loss";
    return verdict;
  }
  verdict.verdict = Verdict::kIdentical;
  for (size_t i = 0; i < written.size(); ++i) {
    const auto again = [&](const std::string& earlier) { return spelled_alike(earlier, written[i]); };
    if (std::any_of(written.begin(), written.begin() + static_cast<ptrdiff_t>(i), again)) continue;
    // Megatron-LM's RL comparator writes lm-loss, its logs and goldens lm loss.
    const std::string_view known = table_name(written[i]);
    const std::string name(known.empty() ? written[i] : known);
    verdict.metrics.push_back(judge_named(name, golden, actual, rules));
    verdict.verdict = worst(verdict.verdict, verdict.metrics.back().verdict);
  }
  verdict.reason = reason_of(verdict);
  return verdict;
}

CaseVerdict judge_resume(const MetricSet& first, const MetricSet& second, int64_t train_iters,
                         const JudgeRules& rules) {
  const int64_t half = train_iters / 2;
  for (const Metric& metric : second.metrics) {
    const auto early = std::find_if(metric.values.begin(), metric.values.end(),
                                    [half](const StepValue& value) { return value.step <= half; });
    if (early == metric.values.end()) continue;
    CaseVerdict verdict;
    verdict.verdict = Verdict::kInvalid;
    verdict.reason = fmt::format("run 2 logged step {} ({}): it did not resume from the checkpoint of step {}",
                                 early->step, metric.name, half);
    return verdict;
  }
  CaseVerdict verdict = judge(after(first, half), after(second, half), rules);
  if (!verdict.reason.empty()) verdict.reason = "run 2 against run 1: " + verdict.reason;
  return verdict;
}

std::string first_difference(const MetricSet& a, const MetricSet& b) {
  for (const MetricSet* set : {&a, &b}) {
    const MetricSet& other = set == &a ? b : a;
    for (const Metric& metric : set->metrics) {
      if (!measures_machine(metric.name) && other.find(metric.name) == nullptr) {
        return fmt::format("{} is there in one of both alone", metric.name);
      }
    }
  }
  for (const Metric& metric : a.metrics) {
    if (measures_machine(metric.name)) continue;
    const Metric& other = *b.find(metric.name);
    const StepIndex twins(other);
    for (const StepValue& value : metric.values) {
      const StepValue* twin = twins.find(value.step);
      const bool both_nan = twin != nullptr && std::isnan(value.value) && std::isnan(twin->value);
      if (twin != nullptr && (both_nan || twin->value == value.value)) continue;
      return fmt::format("{}, step {}: {} and {}", metric.name, value.step, text::python_repr(value.value),
                         twin == nullptr ? "none" : text::python_repr(twin->value));
    }
    if (metric.values.size() != other.values.size())
      return fmt::format("{}: {} and {} steps", metric.name, metric.values.size(), other.values.size());
  }
  return "";
}

}  // namespace assay::train
