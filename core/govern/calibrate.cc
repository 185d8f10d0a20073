#include "core/govern/calibrate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/compare/checks.h"
#include "core/golden/text.h"
#include "core/govern/metric_part.h"

namespace assay::govern {
namespace {

constexpr double kRoom = 2;             // over the largest |difference| that was seen
constexpr double kPerformanceRoom = 3;  // as the performance comparator takes it

using Record = RequestRecord;

// Values of one metric over all pairs.
struct Differences {
  std::vector<double> values;  // |difference|
  uint64_t differing = 0;

  void add(double a, double b) {
    values.push_back(std::fabs(a - b));
    if (a != b) ++differing;
  }
};

double percentile99(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto rank = static_cast<size_t>(std::ceil(0.99 * static_cast<double>(values.size()))) - 1;
  std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(rank), values.end());
  return values[rank];
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

std::vector<double> joined_logprobs(const Record& record) {
  if (record.logprobs) return *record.logprobs;
  std::vector<double> joined = record.prompt_logprobs.value_or(std::vector<double>());
  if (record.generated_logprobs) {
    joined.insert(joined.end(), record.generated_logprobs->begin(), record.generated_logprobs->end());
  }
  return joined;
}

// Generated tokens that both share from the start.
size_t shared_tokens(const Record& a, const Record& b) {
  if (!a.tokens || !b.tokens) return 0;
  const size_t length = std::min(a.tokens->size(), b.tokens->size());
  const auto end = a.tokens->begin() + static_cast<ptrdiff_t>(length);
  return static_cast<size_t>(std::mismatch(a.tokens->begin(), end, b.tokens->begin()).first - a.tokens->begin());
}

class Spread {
 public:
  void add_pair(const Record& a, const Record& b) {
    const size_t shared = shared_tokens(a, b);
    const size_t longest = std::max(a.tokens ? a.tokens->size() : 0, b.tokens ? b.tokens->size() : 0);
    for (size_t i = 0; i < shared; ++i) tokens_.add(0, 0);
    if (shared < longest) tokens_.add(0, 1);
    add_logprobs(a, b, shared);
    if (shared == longest) add_routing(a, b);
  }

  const Differences& tokens() const { return tokens_; }
  const Differences& logprobs() const { return logprobs_; }
  const Differences& routing() const { return routing_; }  // 0 or 1 a set
  const Differences& margins() const { return margins_; }

 private:
  void add_logprobs(const Record& a, const Record& b, size_t shared) {
    const std::vector<double> x = joined_logprobs(a);
    const std::vector<double> y = joined_logprobs(b);
    const size_t generated_x = a.tokens ? a.tokens->size() : 0;
    const size_t generated_y = b.tokens ? b.tokens->size() : 0;
    if (x.size() < generated_x || y.size() < generated_y) return;
    const size_t prompt = x.size() - generated_x;
    if (prompt != y.size() - generated_y) return;  // one of them lacks its prompt's
    for (size_t i = 0; i < prompt + shared; ++i) logprobs_.add(x[i], y[i]);
  }

  void add_routing(const Record& a, const Record& b) {
    if (!a.routing || !b.routing) return;
    const Routing& x = *a.routing;
    const Routing& y = *b.routing;
    if (x.tokens != y.tokens || x.layers != y.layers || x.topk != y.topk || x.positions != y.positions) return;
    for (size_t set = 0; set < x.tokens * x.layers; ++set) {
      const auto begin = static_cast<ptrdiff_t>(set * x.topk);
      const auto end = begin + static_cast<ptrdiff_t>(x.topk);
      const std::set<uint16_t> left(x.experts.begin() + begin, x.experts.begin() + end);
      const std::set<uint16_t> right(y.experts.begin() + begin, y.experts.begin() + end);
      routing_.add(0, left == right ? 0 : 1);
    }
    if (x.margins.size() != y.margins.size()) return;
    for (size_t i = 0; i < x.margins.size(); ++i) {
      margins_.add(static_cast<double>(x.margins[i]), static_cast<double>(y.margins[i]));
    }
  }

  Differences tokens_;
  Differences logprobs_;
  Differences routing_;
  Differences margins_;
};

Status check_runs(const std::vector<CalibrationRun>& runs) {
  if (runs.size() < 2) return invalid("noise needs at least two repeats to compare");
  for (const CalibrationRun& run : runs) {
    const auto faults = compare::nonfinite_values("repeat", run.results);
    if (!faults.empty()) return invalid(fmt::format("request {}: {}", faults[0].request, faults[0].message));
    for (const Record& record : runs.front().results.requests) {
      if (run.results.find(record.id) == nullptr) {
        return invalid(fmt::format("request {} is missing from a repeat of {}", text::printable(record.id), run.shape));
      }
    }
    if (run.results.requests.size() != runs.front().results.requests.size()) {
      return invalid(fmt::format("a repeat of {} has {} requests, the first one {}", run.shape,
                                 run.results.requests.size(), runs.front().results.requests.size()));
    }
  }
  return {};
}

MetricSpread spread_of(const std::string& metric, const Differences& differences) {
  MetricSpread spread{
      .metric = metric, .noise = {}, .compared = differences.values.size(), .differing = differences.differing};
  const auto largest = std::max_element(differences.values.begin(), differences.values.end());
  spread.noise.max = largest == differences.values.end() ? 0 : *largest;
  spread.noise.p99 = percentile99(differences.values);
  spread.noise.samples = differences.values.size();
  return spread;
}

// Median of one repeat, its warm-up left out; 0: the repeat does not have the metric.
double performance_of(const ResultSet& set, const std::string& metric) {
  std::vector<double> values;
  for (const Record& record : set.requests) {
    if (metric == "latency" && record.latency) values.push_back(*record.latency);
    if (metric == "tpot" && record.tpot && record.tpot->size() > 1) {
      values.insert(values.end(), record.tpot->begin() + 1, record.tpot->end());
    }
  }
  for (const Quantity& quantity : set.quantities) {
    if (quantity.name != metric) continue;
    values.assign(quantity.values.begin() + (quantity.values.size() > 1 ? 1 : 0), quantity.values.end());
  }
  return median(std::move(values));
}

MetricSpread performance_spread(const std::vector<CalibrationRun>& runs, const std::string& metric) {
  std::map<std::string, std::vector<double>> by_shape;
  for (const CalibrationRun& run : runs) {
    if (const double value = performance_of(run.results, metric); value > 0) by_shape[run.shape].push_back(value);
  }
  MetricSpread spread{.metric = metric, .noise = {}};
  for (const auto& [shape, values] : by_shape) {
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    spread.compared += values.size();
    if (values.size() < 2) continue;
    spread.noise.max = std::max(spread.noise.max, *high - *low);
    spread.noise.relative = std::max(spread.noise.relative, (*high - *low) / median(values));
  }
  spread.noise.samples = spread.compared;
  spread.differing = spread.noise.max > 0 ? spread.compared : 0;
  return spread;
}

}  // namespace

Result<Calibration> calibrate(const std::vector<CalibrationRun>& runs) {
  if (Status status = check_runs(runs); !status.ok()) return status;
  Spread spread;
  for (size_t i = 0; i < runs.size(); ++i) {
    for (size_t j = i + 1; j < runs.size(); ++j) {
      for (const Record& record : runs[i].results.requests) {
        spread.add_pair(record, *runs[j].results.find(record.id));
      }
    }
  }
  Calibration calibration;
  NoiseModel& noise = calibration.noise;
  noise.repeats = runs.size();
  for (const CalibrationRun& run : runs) {
    if (std::count(noise.shapes.begin(), noise.shapes.end(), run.shape) == 0) noise.shapes.push_back(run.shape);
  }
  calibration.metrics.push_back(spread_of("generated_tokens", spread.tokens()));
  if (!spread.logprobs().values.empty()) {
    calibration.metrics.push_back(spread_of("logprobs", spread.logprobs()));
    noise.metrics["logprobs"] = calibration.metrics.back().noise;
  }
  if (!spread.routing().values.empty()) {
    MetricSpread routing = spread_of("routing_indices", spread.routing());
    routing.noise = spread_of("", spread.margins()).noise;
    if (routing.noise.samples > 0) noise.metrics["routing_indices"] = routing.noise;
    calibration.metrics.push_back(std::move(routing));
  }
  for (const std::string& metric : metrics_in(runs.front().results)) {
    if (!is_performance(metric)) continue;
    calibration.metrics.push_back(performance_spread(runs, metric));
    noise.metrics[metric] = calibration.metrics.back().noise;
  }
  if (spread.tokens().differing > 0) {
    calibration.notes.push_back(
        fmt::format("repeats part at {} places: this engine is not deterministic here, or batches change what it says",
                    spread.tokens().differing));
  }
  return calibration;
}

double proposed_tolerance(const MetricSpread& spread) {
  const double wanted =
      is_performance(spread.metric) ? kPerformanceRoom * spread.noise.relative : kRoom * spread.noise.max;
  if (!(wanted > 0)) return 0;
  const double unit = std::pow(10, std::floor(std::log10(wanted)));
  return std::stod(fmt::format("{:.0e}", std::ceil(wanted / unit * (1 - 1e-12)) * unit));
}

std::string calibration_text(const Calibration& calibration) {
  std::string out = fmt::format("{} results, {}\n", calibration.noise.repeats,
                                fmt::format("{}", fmt::join(calibration.noise.shapes, ", ")));
  out += fmt::format("  {:<24} {:>17} {:>11} {:>11} {:>10}   {}\n", "metric", "differing", "max |d|", "p99 |d|",
                     "relative", "smallest tolerance that would pass");
  for (const MetricSpread& spread : calibration.metrics) {
    const bool performance = is_performance(spread.metric);
    const double smallest = performance ? spread.noise.relative : spread.noise.max;
    out += fmt::format("  {:<24} {:>17} {:>11.3g} {:>11.3g} {:>10.3g}   {}\n", text::printable(spread.metric),
                       fmt::format("{}/{}", spread.differing, spread.compared), spread.noise.max, spread.noise.p99,
                       spread.noise.relative,
                       spread.metric == "generated_tokens" ? std::string("-") : fmt::format("{:.6g}", smallest));
  }
  for (const std::string& note : calibration.notes) out += "  " + note + "\n";
  std::string lines;
  for (const MetricSpread& spread : calibration.metrics) {
    const double tolerance = spread.metric == "generated_tokens" ? 0 : proposed_tolerance(spread);
    if (tolerance > 0) lines += fmt::format("    {}: {:g}\n", spread.metric, tolerance);
  }
  if (lines.empty()) return out + "nothing differs: no tolerance is needed on this device\n";
  return out + "proposed for model_config.yaml:\nASSAY:\n  tolerance:\n" + lines;
}

}  // namespace assay::govern
