#include "core/compare/near_tie.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/compare/ulp.h"

namespace assay::compare {
std::string dtype_name(int mantissa) {
  for (const char* name : {"fp32", "fp16", "bf16"}) {
    if (mantissa_bits(name) == mantissa) return name;
  }
  return fmt::format("{}-bit mantissa", mantissa);
}

TieRule tie_rule(std::optional<int> golden, std::optional<int> run, double noise) {
  TieRule rule;
  rule.noise = noise;
  rule.mantissa = std::min(golden.value_or(run.value_or(kFp32Mantissa)), run.value_or(golden.value_or(kFp32Mantissa)));
  if (!golden || !run || *golden == *run) return rule;
  rule.ulps = kUlpsOtherDtype;
  rule.arithmetic = fmt::format("arithmetic differs: golden {}, run {}", dtype_name(*golden), dtype_name(*run));
  return rule;
}

Gap measure_gap(const TieRule& rule, double a, double b, std::optional<double> logit_a) {
  constexpr double kBelowOne = 0.5;
  const double larger = logit_a ? std::max(std::fabs(*logit_a), std::fabs(*logit_a + b - a)) : kBelowOne;
  Gap gap;
  gap.nats = std::fabs(a - b);
  if (!std::isfinite(gap.nats) || !std::isfinite(larger)) return gap;
  const double unit = ulp(rule.mantissa, larger);
  gap.ulps = gap.nats / unit;
  // The logprobs are fp32 numbers themselves: half a ULP of error each.
  const double rounding = ulp(kFp32Mantissa, std::max(std::fabs(a), std::fabs(b)));
  gap.near_tie = gap.nats <= std::max(rule.ulps * unit, rule.noise) + rounding;
  return gap;
}

}  // namespace assay::compare
