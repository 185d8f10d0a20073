// Metrics throughput, tpot, latency, mem-max-allocated-bytes and lifetime_prefill_token_count. The first four compare
// medians; a regression beyond max(tolerance, 3 * the golden's relative noise) is BEYOND, an improvement never fails
// and is noted. The last one is a count: it is equal or not.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <iterator>
#include <string_view>

#include "assay/sdk.hpp"
#include "core/compare/comparator.h"
#include "plugins/comparators/performance/collect.h"

namespace {

using assay::compare::emit;
using assay::performance::Sides;
namespace sdk = assay::sdk;

constexpr double kNoiseFactor = 3;
constexpr double kRounding = 1e-12;  // of the division that makes a change relative

struct Measure {
  std::string_view metric;
  std::string_view unit;
  double scale;  // from the file's unit to `unit`
  bool higher_is_better;
  double tolerance;  // relative
  std::string_view worse;
  std::string_view better;
  Sides (*collect)(const assay_judgement& judgement);
};

using assay::performance::collect_latency;
using assay::performance::collect_quantity;
using assay::performance::collect_tpot;
constexpr double kMebibyte = 1.0 / (1024 * 1024);
constexpr std::string_view kCount = "lifetime_prefill_token_count";
constexpr std::array<Measure, 4> kMeasures = {{
    {"throughput", "tokens/s", 1, true, 0.10, "slower", "faster", collect_quantity},
    {"tpot", "s", 1, false, 0.10, "slower", "faster", collect_tpot},
    {"latency", "s", 1, false, 0.10, "slower", "faster", collect_latency},
    {"mem-max-allocated-bytes", "MiB", kMebibyte, false, 0.05, "more", "less", collect_quantity},
}};

bool same_bits(const std::vector<double>& a, const std::vector<double>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](double x, double y) { return std::bit_cast<uint64_t>(x) == std::bit_cast<uint64_t>(y); });
}

// True after a finding.
bool emit_fault(const assay_sink& sink, const Sides& sides) {
  if (sides.fault.message.empty()) return false;
  emit(sink, {.kind = static_cast<uint32_t>(sides.fault.missing ? ASSAY_FINDING_MISSING : ASSAY_FINDING_BROKEN),
              .message = sides.fault.message});
  return true;
}

// The largest relative regression that passes, and where it comes from.
struct Limit {
  double value = 0;
  std::string source;
};

Limit limit_of(const Measure& measure, const assay::compare::ComparatorOptions& options) {
  const double tolerance = options.tolerance.value_or(measure.tolerance);
  const double noise = kNoiseFactor * options.noise.relative.value_or(0);
  if (noise > tolerance) return {noise, fmt::format("{:g} x the golden's noise", kNoiseFactor)};
  return {tolerance, options.tolerance ? "ASSAY.tolerance" : "default"};
}

void judge_measure(const assay_sink& sink, const Measure& measure, const assay_judgement& judgement,
                   const assay::compare::ComparatorOptions& options) {
  const Sides sides = measure.collect(judgement);
  if (emit_fault(sink, sides)) return;
  const double golden = assay::performance::median(sides.golden.judged);
  const double result = assay::performance::median(sides.result.judged);
  const double change = (result - golden) / golden;
  const double worse = measure.higher_is_better ? -change : change;  // relative, > 0: a regression
  const double passing = worse > 0 ? worse : 0;
  const Limit limit = limit_of(measure, options);
  if (measure.higher_is_better && limit.value >= 1) {
    return emit(sink, {.kind = ASSAY_FINDING_BROKEN,
                       .message = fmt::format("{} may fall by {:.0f} % ({}), and no rate falls by 100 %: no regression "
                                              "could be told; state a tolerance below 1, or measure the noise again on "
                                              "a quiet machine",
                                              measure.metric, 100 * limit.value, limit.source)});
  }
  const bool equal = same_bits(sides.golden.all, sides.result.all);
  const bool beyond = worse > limit.value + kRounding;
  const std::string medians =
      fmt::format("median of {} {:.6g} {}, golden {:.6g} {} of {}", sides.result.judged.size(), result * measure.scale,
                  measure.unit, golden * measure.scale, measure.unit, sides.golden.judged.size());
  const std::string moved =
      fmt::format("{:.2f} % {}", 100 * std::fabs(worse), worse > 0 ? measure.worse : measure.better);
  emit(sink, {.kind = static_cast<uint32_t>(equal    ? ASSAY_FINDING_EQUAL
                                            : beyond ? ASSAY_FINDING_BEYOND
                                                     : ASSAY_FINDING_WITHIN),
              .compared = sides.golden.judged.size(),
              .differing = beyond ? 1U : 0U,
              .max_abs_difference = std::fabs(result - golden),
              .smallest_passing_tolerance = passing,
              .message = fmt::format("{}: {}; limit {:.2f} % ({}), smallest passing tolerance {:.4g}", medians,
                                     worse == 0 ? "equal medians" : moved, 100 * limit.value, limit.source, passing)});
  for (const std::string& note : {sides.golden.note, sides.result.note}) {
    if (!note.empty()) emit(sink, {.kind = ASSAY_FINDING_NOTE, .message = note});
  }
  if (-worse > limit.value + kRounding) {
    emit(sink, {.kind = ASSAY_FINDING_NOTE,
                .message = fmt::format("{} than the golden: an improvement beyond the limit of {:.2f} %; record a new "
                                       "golden if it is to stay",
                                       moved, 100 * limit.value)});
  }
}

// Token counts are whole numbers; a list holds one for each pass.
void judge_count(const assay_sink& sink, const assay_judgement& judgement) {
  const Sides sides = collect_quantity(judgement);
  if (emit_fault(sink, sides)) return;
  for (const auto& [values, side] : {std::pair(&sides.golden.all, "golden"), std::pair(&sides.result.all, "result")}) {
    const auto bad =
        std::find_if(values->begin(), values->end(), [](double value) { return std::trunc(value) != value; });
    if (bad == values->end()) continue;
    return emit(sink,
                {.kind = ASSAY_FINDING_BROKEN,
                 .message = fmt::format("{} of the {} is {}, expected a whole number of tokens", kCount, side, *bad)});
  }
  const std::vector<double>& golden = sides.golden.all;
  const std::vector<double>& result = sides.result.all;
  if (golden.size() != result.size()) {
    return emit(sink, {.kind = ASSAY_FINDING_BROKEN,
                       .message = fmt::format("{} of the golden has {} values, of the result {}", kCount, golden.size(),
                                              result.size())});
  }
  double largest = 0;
  uint64_t differing = 0;
  size_t first = golden.size();
  for (size_t i = 0; i < golden.size(); ++i) {
    largest = std::max(largest, std::fabs(golden[i] - result[i]));
    if (golden[i] == result[i]) continue;
    if (++differing == 1) first = i;
  }
  const bool equal = differing == 0;
  emit(sink, {.kind = static_cast<uint32_t>(equal ? ASSAY_FINDING_EQUAL : ASSAY_FINDING_BEYOND),
              .index = equal ? -1 : static_cast<int64_t>(first),
              .compared = golden.size(),
              .differing = differing,
              .max_abs_difference = largest,
              .message = equal ? fmt::format("{} prefilled tokens, as in the golden", golden[0])
                               : fmt::format("golden {} prefilled tokens, result {}: a count is equal or not; look at "
                                             "prefix caching, chunked prefill and preemption",
                                             golden[first], result[first])});
}

int32_t judge(const assay_judgement* judgement, const assay_sink* sink, assay_error* error) {
  using assay::compare::ComparatorOptions;
  return assay::compare::judge_with_options(*judgement, error, [&](const ComparatorOptions& options) -> assay::Status {
    const std::string_view metric = sdk::text(judgement->metric);
    if (metric == kCount) {
      if (assay::Status status = assay::compare::refuse_tolerance(options, metric); !status.ok()) return status;
      judge_count(*sink, *judgement);
      return {};
    }
    const auto measure =
        std::find_if(kMeasures.begin(), kMeasures.end(), [&](const Measure& m) { return m.metric == metric; });
    if (measure == kMeasures.end())
      return assay::unsupported(fmt::format("performance does not serve metric {}", metric));
    judge_measure(*sink, *measure, *judgement, options);
    return {};
  });
}

const char* const kMetrics[] = {"throughput", "tpot", "latency", "mem-max-allocated-bytes",
                                "lifetime_prefill_token_count"};
const assay_comparator_table kTable = {sizeof(assay_comparator_table), 0, judge, kMetrics, std::size(kMetrics)};
const assay_plugin kPlugin = assay::compare::comparator_plugin(
    "performance", "medians of times, rates and memory against the golden's noise; counts", 0, &kTable);

}  // namespace

ASSAY_PLUGIN_EXPORT const assay_plugin* assay_plugin_query(uint32_t abi_major, uint32_t, const assay_host*) {
  return abi_major == ASSAY_ABI_MAJOR ? &kPlugin : nullptr;
}
