#include "core/train/judge_metric.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "core/golden/text.h"
#include "core/train/thresholds.h"

namespace assay::train {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Pair {
  int64_t step = 0;
  double golden = 0;
  double actual = 0;

  double difference() const { return std::fabs(actual - golden); }
  double relative() const {
    if (actual == golden) return 0;
    return golden == 0 ? kInfinity : difference() / std::fabs(golden);
  }
};

Finding finding(Verdict verdict, std::string message, int64_t step = -1) {
  Finding found;
  found.verdict = verdict;
  found.index = step;
  found.message = std::move(message);
  return found;
}

Finding note(std::string message) {
  Finding found = finding(Verdict::kIdentical, std::move(message));
  found.note = true;
  return found;
}

const char* wrong_with(const StepValue& value) {
  return value.finite() ? "no measurement above zero" : "no finite number";
}

class Judging {
 public:
  Judging(const std::string& name, const Metric& golden, const Metric& actual, const JudgeRules& rules)
      : golden_(golden), actual_(actual), rules_(rules) {
    verdict_.metric = name;
    threshold_ = *threshold_of(name);
  }

  MetricVerdict run() {
    if (!golden_.note.empty()) add(note(fmt::format("{} {}", rules_.reference, golden_.note)));
    if (collect()) {
      if (verdict_.metric == "iteration-time") {
        judge_time();
      } else if (measures_machine(verdict_.metric)) {
        judge_memory();
      } else {
        judge_values();
      }
    }
    verdict_.verdict = Verdict::kIdentical;
    for (const Finding& found : verdict_.findings) {
      if (!found.note) verdict_.verdict = worst(verdict_.verdict, found.verdict);
    }
    return std::move(verdict_);
  }

 private:
  void add(Finding found) { verdict_.findings.push_back(std::move(found)); }

  std::vector<int64_t> steps() {
    std::vector<int64_t> list;
    if (verdict_.metric == "iteration-time" && !rules_.rl) return iteration_time_steps(golden_);
    size_t dropped = 0;  // values at the beginning that do not count
    if (rules_.rl && verdict_.metric == "iteration-time") {
      dropped = static_cast<size_t>(std::max<int64_t>(rules_.throughput_start, 0));
    } else if (rules_.rl && measures_machine(verdict_.metric)) {
      dropped = 1;
    }
    size_t silent = 0;
    for (size_t i = 0; i < golden_.values.size(); ++i) {
      const StepValue& value = golden_.values[i];
      if (value.is_text) ++silent;
      if (!value.is_text && i >= dropped) list.push_back(value.step);
    }
    if (silent > 0) {
      add(note(fmt::format("{} of {} steps have no number in {} and are not compared", silent, golden_.values.size(),
                           rules_.reference)));
    }
    return list;
  }

  // Fills pairs_; false where something is missing or no number.
  bool collect() {
    const std::vector<int64_t> wanted = steps();
    if (wanted.empty()) {
      add(finding(Verdict::kInvalid, rules_.reference + " holds no number to compare; record it again"));
      return false;
    }
    std::vector<int64_t> missing;
    std::vector<int64_t> broken;
    const auto measures = [&](const StepValue& value) {  // no time and no memory is zero
      return value.finite() && (!measures_machine(verdict_.metric) || value.value > 0);
    };
    const StepIndex golden(golden_);
    const StepIndex actual(actual_);
    for (const int64_t step : wanted) {
      const StepValue& reference = *golden.find(step);
      const StepValue* value = actual.find(step);
      if (!measures(reference)) {
        add(finding(Verdict::kInvalid,
                    fmt::format("step {} is {} in {}, {}", step, text::python_repr(reference.value), rules_.reference,
                                wrong_with(reference)),
                    step));
        return false;
      }
      if (value == nullptr || value->is_text) {
        missing.push_back(step);
      } else if (!measures(*value)) {
        broken.push_back(step);
      } else {
        pairs_.push_back({step, reference.value, value->value});
      }
    }
    if (!missing.empty()) {
      add(finding(Verdict::kInvalid,
                  fmt::format("step {} is missing from the run: {} of {} steps are", missing.front(), missing.size(),
                              wanted.size()),
                  missing.front()));
    }
    if (!broken.empty()) {
      const StepValue& first = *actual.find(broken.front());
      add(finding(Verdict::kInvalid,
                  fmt::format("step {} is {}, {}: {} of {} steps are not", first.step, text::python_repr(first.value),
                              wrong_with(first), broken.size(), wanted.size()),
                  first.step));
    }
    return missing.empty() && broken.empty();
  }

  double tolerance(double otherwise) const {
    const auto given = std::find_if(rules_.tolerances.begin(), rules_.tolerances.end(),
                                    [&](const auto& one) { return spelled_alike(one.first, verdict_.metric); });
    return given == rules_.tolerances.end() ? otherwise : given->second;
  }

  // Within a relative limit; values near zero of reinforcement learning by their size.
  bool within(const Pair& pair, double limit) const {
    if (rules_.rl && limit > 0 && std::fabs(pair.golden) < kRlLossNearZero &&
        std::fabs(pair.actual) <= kRlLossNearZero) {
      return true;
    }
    return pair.actual == pair.golden || pair.difference() <= limit * std::fabs(pair.golden);
  }

  void judge_values() {
    const bool is_loss = verdict_.metric != "num-zeros";
    const double wide = rules_.rl && is_loss ? kRlLoss : threshold_.relative;
    const double stated = tolerance(rules_.nondeterministic || rules_.rl ? wide : 0);
    const auto count_beyond = [&](double limit) {
      return std::count_if(pairs_.begin(), pairs_.end(), [&](const Pair& pair) { return !within(pair, limit); });
    };
    Finding found = summary();
    if (found.differing == 0) return add(std::move(found));
    const auto beyond = count_beyond(stated);
    const auto far = count_beyond(std::max(wide, stated));
    if (beyond == 0) {
      found.verdict = Verdict::kEquivalent;
    } else {
      found.verdict =
          far > allowed_failing_steps(static_cast<int64_t>(pairs_.size())) ? Verdict::kDiverged : Verdict::kDrift;
      const Pair& first =
          *std::find_if(pairs_.begin(), pairs_.end(), [&](const Pair& pair) { return !within(pair, stated); });
      found.index = first.step;
    }
    const Pair& shown =
        *std::find_if(pairs_.begin(), pairs_.end(), [&](const Pair& p) { return p.step == found.index; });
    const Pair& largest = *std::max_element(pairs_.begin(), pairs_.end(),
                                            [](const Pair& a, const Pair& b) { return a.relative() < b.relative(); });
    found.message = fmt::format(
        "step {}: {}, {} has {} (relative difference {:.3g}); {} of {} steps differ, {} beyond the tolerance {:.3g}",
        shown.step, text::python_repr(shown.actual), rules_.reference, text::python_repr(shown.golden),
        shown.relative(), found.differing, found.compared, beyond, stated);
    if (largest.step != shown.step)
      found.message += fmt::format(", the largest at step {} ({:.3g})", largest.step, largest.relative());
    if (far > 0) found.message += fmt::format(", {} beyond {:.3g}", far, std::max(wide, stated));
    add(std::move(found));
  }

  // Counts over all pairs; IDENTICAL, with the first step that differs.
  Finding summary() const {
    Finding found;
    found.verdict = Verdict::kIdentical;
    found.compared = pairs_.size();
    for (const Pair& pair : pairs_) {
      if (pair.actual == pair.golden) continue;
      if (found.differing++ == 0) found.index = pair.step;
      found.max_abs_difference = std::max(found.max_abs_difference, pair.difference());
      found.smallest_passing_tolerance = std::max(found.smallest_passing_tolerance, pair.relative());
    }
    found.message = fmt::format("{} steps are equal", found.compared);
    return found;
  }

  // A number of the run against one of the golden, where less is better.
  void judge_cost(const std::string& what, double golden, double actual, double limit) {
    Finding found = summary();
    const double change = actual / golden - 1;
    found.smallest_passing_tolerance = std::max(change, 0.0);
    const bool beyond = actual > golden * (1 + limit);
    if (found.differing > 0) {
      found.verdict = beyond ? Verdict::kDrift : Verdict::kEquivalent;
      found.message =
          fmt::format("{} is {}, in {} {}: {:+.2f} %, the limit is +{:g} %", what, text::python_repr(actual),
                      rules_.reference, text::python_repr(golden), change * 100, limit * 100);
    }
    add(std::move(found));
    if (change < -limit)
      add(note(fmt::format("{} is better than {} by more than the limit; record it again", what, rules_.reference)));
  }

  void judge_time() {
    std::vector<double> golden;
    std::vector<double> actual;
    for (const Pair& pair : pairs_) {
      golden.push_back(pair.golden);
      actual.push_back(pair.actual);
    }
    judge_cost(fmt::format("the median over {} steps from step {}", pairs_.size(), pairs_.front().step), median(golden),
               median(actual), tolerance(rules_.rl ? kRlIterationTime : threshold_.relative));
  }

  void judge_memory() {
    const auto larger = [](const Pair& a, const Pair& b) { return a.actual < b.actual; };
    if (rules_.rl) {
      const double golden = std::max_element(pairs_.begin(), pairs_.end(), [](const Pair& a, const Pair& b) {
                              return a.golden < b.golden;
                            })->golden;
      return judge_cost("the largest value", golden, std::max_element(pairs_.begin(), pairs_.end(), larger)->actual,
                        tolerance(kRlMemory));
    }
    // The step that grew most stands for all.
    const Pair& worst_pair = *std::max_element(pairs_.begin(), pairs_.end(), [](const Pair& a, const Pair& b) {
      return a.actual * std::fabs(b.golden) < b.actual * std::fabs(a.golden);
    });
    judge_cost(fmt::format("step {}", worst_pair.step), worst_pair.golden, worst_pair.actual,
               tolerance(threshold_.relative));
  }

  const Metric& golden_;
  const Metric& actual_;
  const JudgeRules& rules_;
  Threshold threshold_;
  std::vector<Pair> pairs_;
  MetricVerdict verdict_;
};

MetricVerdict alone(const std::string& name, Verdict verdict, std::string message) {
  return {.metric = name, .verdict = verdict, .findings = {finding(verdict, std::move(message))}};
}

}  // namespace

bool measures_machine(std::string_view metric) {
  const std::string_view name = table_name(metric);
  return name == "iteration-time" || name == "mem-allocated-bytes" || name == "mem-max-allocated-bytes";
}

MetricVerdict judge_metric(const std::string& name, const Metric* golden, const Metric* actual,
                           const JudgeRules& rules) {
  if (!threshold_of(name)) {
    return alone(name, Verdict::kNotComparable, "no such metric of training; docs/training.md lists them");
  }
  if (golden == nullptr) return alone(name, Verdict::kNotComparable, rules.reference + " has no values of it");
  if (actual == nullptr) {
    return alone(name, Verdict::kInvalid, "the run logged no value of it: the case has to log it to TensorBoard");
  }
  for (const auto& [metric, whose] : {std::pair(golden, rules.reference.c_str()), std::pair(actual, "the run")}) {
    if (!metric->flaw.empty()) return alone(name, Verdict::kInvalid, fmt::format("in {} {}", whose, metric->flaw));
  }
  if (!golden->gap.empty()) {
    return alone(name, Verdict::kInvalid, fmt::format("in {} {}; record it again", rules.reference, golden->gap));
  }
  return Judging(name, *golden, *actual, rules).run();
}

}  // namespace assay::train
