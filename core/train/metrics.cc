#include "core/train/metrics.h"

#include <fmt/format.h>

#include <algorithm>

namespace assay::train {
namespace {

bool same(const StepValue& a, const StepValue& b) {
  return a.step == b.step && a.is_text == b.is_text &&
         (a.value == b.value || (std::isnan(a.value) && std::isnan(b.value)));
}

}  // namespace

bool spelled_alike(std::string_view a, std::string_view b) {
  const auto joins = [](char c) { return c == '-' || c == '_' || c == ' '; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](char x, char y) { return x == y || (joins(x) && joins(y)); });
}

const Metric* MetricSet::find_alike(std::string_view name) const {
  if (const Metric* same = find(name)) return same;
  const auto found =
      std::find_if(metrics.begin(), metrics.end(), [name](const Metric& m) { return spelled_alike(m.name, name); });
  return found == metrics.end() ? nullptr : &*found;
}

StepIndex::StepIndex(const Metric& metric) {
  by_step_.reserve(metric.values.size());
  for (const StepValue& value : metric.values) by_step_.push_back(&value);
  std::sort(by_step_.begin(), by_step_.end(), [](const auto* a, const auto* b) { return a->step < b->step; });
}

const StepValue* StepIndex::find(int64_t step) const {
  const auto found = std::lower_bound(by_step_.begin(), by_step_.end(), step,
                                      [](const StepValue* value, int64_t wanted) { return value->step < wanted; });
  return found == by_step_.end() || (*found)->step != step ? nullptr : *found;
}

std::string MetricSet::contradiction(std::string_view name) const {
  const Metric* first = find_alike(name);
  for (const Metric& metric : metrics) {
    if (&metric == first || !spelled_alike(metric.name, name)) continue;
    const std::vector<StepValue>& a = first->values;
    const std::vector<StepValue>& b = metric.values;
    const auto [left, right] = std::mismatch(a.begin(), a.end(), b.begin(), b.end(), same);
    if (left == a.end() && right == b.end()) continue;
    return fmt::format("'{}' and '{}' are both there and differ, first at step {}", first->name, metric.name,
                       left == a.end() ? right->step : left->step);
  }
  return "";
}

const Metric* MetricSet::find(std::string_view name) const {
  const auto found = std::find_if(metrics.begin(), metrics.end(), [name](const Metric& m) { return m.name == name; });
  return found == metrics.end() ? nullptr : &*found;
}

}  // namespace assay::train
