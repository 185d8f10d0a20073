// What a training run logged, in the form of its golden files.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace assay::train {

struct StepValue {
  int64_t step = 0;
  double value = 0;      // NaN where there is no number
  bool is_text = false;  // the file has a string there, "nan": not logged at that step

  bool finite() const { return !is_text && std::isfinite(value); }
};

struct Metric {
  std::string name;
  int64_t start_step = 0;
  int64_t end_step = 0;
  int64_t step_interval = 0;
  std::vector<StepValue> values;  // in the order of the file; each step once
  bool unusable = false;          // read loosely: there are no values by step
  std::string flaw = {};          // of the file: what of it says two things or nothing that counts; empty: nothing
  std::string gap = {};           // of the file: where the values are not the steps that it states; empty: they are
  std::string note = {};          // of the file: what is odd about it, and admitted
};

// Values of a metric by their step. The metric outlives it and does not change.
class StepIndex {
 public:
  explicit StepIndex(const Metric& metric);
  const StepValue* find(int64_t step) const;  // null: absent

 private:
  std::vector<const StepValue*> by_step_;
};

struct MetricSet {
  std::vector<Metric> metrics;  // in the order of the file
  std::vector<std::string> notes;

  const Metric* find(std::string_view name) const;         // null: absent
  const Metric* find_alike(std::string_view name) const;   // spelled so, else the first that is spelled alike
  std::string contradiction(std::string_view name) const;  // two that are spelled alike and differ, and how; else empty
};

// True where two names differ in nothing but hyphens, underscores and blanks: "lm loss", "lm-loss", "lm_loss".
bool spelled_alike(std::string_view a, std::string_view b);

}  // namespace assay::train
