#include "core/train/metrics.h"

#include <algorithm>

namespace assay::train {

const StepValue* Metric::find(int64_t step) const {
  const auto found = std::find_if(values.begin(), values.end(), [step](const StepValue& v) { return v.step == step; });
  return found == values.end() ? nullptr : &*found;
}

const Metric* MetricSet::find(std::string_view name) const {
  const auto found = std::find_if(metrics.begin(), metrics.end(), [name](const Metric& m) { return m.name == name; });
  return found == metrics.end() ? nullptr : &*found;
}

}  // namespace assay::train
