#include "core/train/metrics.h"

#include <algorithm>

namespace assay::train {

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

const StepValue* Metric::find(int64_t step) const {
  const auto found = std::find_if(values.begin(), values.end(), [step](const StepValue& v) { return v.step == step; });
  return found == values.end() ? nullptr : &*found;
}

const Metric* MetricSet::find(std::string_view name) const {
  const auto found = std::find_if(metrics.begin(), metrics.end(), [name](const Metric& m) { return m.name == name; });
  return found == metrics.end() ? nullptr : &*found;
}

}  // namespace assay::train
