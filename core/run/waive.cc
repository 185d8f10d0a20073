#include "core/run/waive.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/discover/waivers.h"
#include "core/run/repeats.h"

namespace assay::run {
namespace {

template <class T>
bool holds(const std::vector<T>& list, const T& item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

bool concerns(const Waiver& waiver, const WaiverContext& context) {
  return (waiver.platforms.empty() || holds(waiver.platforms, context.platform)) &&
         (waiver.environments.empty() || holds(waiver.environments, context.environment)) &&
         (waiver.relations.empty() || holds(waiver.relations, context.relation));
}

// True when nothing but the waiver's metrics fails; a verdict without judged metrics (CRASHED ...) is not covered then.
bool covers_metrics(const Waiver& waiver, const CaseVerdict& verdict) {
  if (waiver.metrics.empty()) return true;
  size_t failing = 0;
  for (const MetricVerdict& metric : verdict.metrics) {
    if (passes(metric.verdict) || metric.metric == kRepeatsMetric) continue;
    if (!holds(waiver.metrics, metric.metric)) return false;
    ++failing;
  }
  return failing > 0;
}

std::string names_of(const std::vector<Verdict>& verdicts) {
  std::string names;
  for (const Verdict verdict : verdicts) names.append(names.empty() ? "" : ", ").append(to_string(verdict));
  return names;
}

std::string signature(const Waiver& waiver, const std::string& today) {
  return fmt::format("{} ({}, {}; {})", waiver.reason, waiver.owner, waiver.issue,
                     discover::waiver_validity(waiver, today));
}

void change(CaseVerdict* verdict, Verdict to, std::string declared) {
  verdict->judged = verdict->verdict;
  verdict->verdict = to;
  verdict->declared = std::move(declared);
}

void apply_to_pass(const Waiver& waiver, const std::string& today, CaseVerdict* verdict) {
  if (waiver.expect_failure && discover::waiver_days_left(waiver, today) >= 0) {
    change(verdict, Verdict::kXpass, "declared to fail: " + signature(waiver, today));
    verdict->reason = "passes although it is declared to fail: remove the waiver; " + verdict->reason;
  } else if (verdict->declared.empty()) {
    verdict->declared = "waiver unused, the case passes: " + signature(waiver, today);
  }
}

}  // namespace

Declarations declarations_of(const TestCase& test) {
  return {.waivers = test.assay.waivers, .may_fail_to_run = test.test_evaluation == "xpass"};
}

void apply_declarations(const Declarations& declarations, const WaiverContext& context, CaseVerdict* verdict) {
  if (verdict->verdict == Verdict::kSkipped) return;
  const std::string& today = context.today;
  const bool passed = passes(verdict->verdict);
  const Waiver* expired = nullptr;
  for (const Waiver& waiver : declarations.waivers) {
    if (!concerns(waiver, context)) continue;
    if (passed) {
      apply_to_pass(waiver, today, verdict);
      if (verdict->judged) return;
    } else if (!holds(waiver.verdicts, verdict->verdict) || !covers_metrics(waiver, *verdict)) {
      if (verdict->declared.empty()) {
        const std::string of = waiver.metrics.empty() ? "" : fmt::format(" of {}", fmt::join(waiver.metrics, ", "));
        verdict->declared =
            fmt::format("waiver covers {}{} only: {}", names_of(waiver.verdicts), of, signature(waiver, today));
      }
    } else if (discover::waiver_days_left(waiver, today) < 0) {
      expired = expired == nullptr ? &waiver : expired;
    } else {
      return change(verdict, waiver.expect_failure ? Verdict::kXfail : Verdict::kWaived,
                    (waiver.expect_failure ? "declared to fail: " : "waived: ") + signature(waiver, today));
    }
  }
  const Verdict is = verdict->verdict;
  if (declarations.may_fail_to_run && context.engine_failed && (is == Verdict::kCrashed || is == Verdict::kInvalid)) {
    return change(verdict, Verdict::kXfail, "TEST_EVALUATION: xpass allows the engine to fail");
  }
  if (expired != nullptr) verdict->declared = "waiver no longer counts: " + signature(*expired, today);
}

}  // namespace assay::run
