#include "core/train/stated_steps.h"

#include <fmt/format.h>

#include <algorithm>

namespace assay::train {
namespace {

constexpr int64_t kMostSteps = int64_t{1} << 40;
constexpr int64_t kOlderSample = 5;  // steps
constexpr int64_t kFirstStep = 1;

// `first`, then those that `rest` and `interval` give, up to `last`.
struct Steps {
  int64_t first = 0;
  int64_t rest = 0;
  int64_t interval = 1;
  int64_t last = 0;
};

// How `steps`, sorted, differ from these.
struct Difference {
  int64_t missing = 0;
  int64_t first_missing = 0;
  int64_t beyond = 0;
  int64_t first_beyond = 0;

  bool none() const { return missing == 0 && beyond == 0; }
};

Difference difference_of(const std::vector<int64_t>& steps, const Steps& expected) {
  Difference found;
  int64_t next = expected.first;
  const auto advance = [&] { next = next == expected.first ? expected.rest : next + expected.interval; };
  const auto skip_to = [&](int64_t step) {  // what is expected before `step` is missing
    if (next >= step) return;
    if (found.missing++ == 0) found.first_missing = next;
    advance();
    if (next >= step) return;
    const int64_t count = (step - next + expected.interval - 1) / expected.interval;
    found.missing += count;
    next += count * expected.interval;
  };
  for (const int64_t step : steps) {
    if (step >= expected.first && step <= expected.last) skip_to(step);
    if (step == next && step <= expected.last) {
      advance();
    } else if (found.beyond++ == 0) {
      found.first_beyond = step;
    }
  }
  skip_to(expected.last + 1);
  return found;
}

std::vector<int64_t> sorted_steps(const Metric& metric) {
  std::vector<int64_t> steps;
  for (const StepValue& value : metric.values) steps.push_back(value.step);
  std::sort(steps.begin(), steps.end());
  return steps;
}

bool is_older_sample(const Metric& metric, const std::vector<int64_t>& steps) {
  return metric.step_interval == 1 && metric.start_step == kFirstStep && steps.size() > 2 &&
         steps.front() == kFirstStep && steps.back() == metric.end_step &&
         std::all_of(steps.begin() + 1, steps.end(), [](int64_t step) { return step % kOlderSample == 0; });
}

}  // namespace

void check_steps(Metric* metric) {
  const int64_t start = metric->start_step;
  const int64_t end = metric->end_step;
  const int64_t interval = metric->step_interval;
  if (interval < 1 || interval > kMostSteps) {
    metric->gap = fmt::format("step_interval is {}, expected 1 or more", interval);
    return;
  }
  if (start < 0 || end < start || end > kMostSteps) {
    metric->gap = fmt::format("start_step is {} and end_step {}, expected 0 <= start_step <= end_step", start, end);
    return;
  }
  const std::vector<int64_t> steps = sorted_steps(*metric);
  if (steps.empty()) return;  // the judge tells that there is no number
  if (is_older_sample(*metric, steps)) {
    const Difference found = difference_of(steps, {kFirstStep, kOlderSample, kOlderSample, end});
    if (found.missing <= 1) {
      metric->note = fmt::format("states every step and has every fifth{}",
                                 found.missing == 0 ? "" : fmt::format(", without step {}", found.first_missing));
      return;
    }
  }
  const bool sampled = start == kFirstStep && interval > 1 && steps.size() > 1 && steps[1] % interval == 0;
  const Difference found = difference_of(steps, {start, sampled ? interval : start + interval, interval, end});
  const std::string stated = fmt::format("start_step {}, end_step {}, step_interval {}", start, end, interval);
  if (found.missing > 0) {
    metric->gap =
        fmt::format("step {} is missing, {} of those that {} state are", found.first_missing, found.missing, stated);
  } else if (found.beyond > 0) {
    metric->gap = fmt::format("step {} is beyond {}, {} steps are", found.first_beyond, stated, found.beyond);
  } else if (steps.back() != end) {
    metric->gap = fmt::format("the last value is at step {}, end_step is {}", steps.back(), end);
  }
}

}  // namespace assay::train
