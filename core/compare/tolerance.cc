#include "core/compare/tolerance.h"

#include <fmt/format.h>

#include <utility>

#include "core/compare/ulp.h"

namespace assay::compare {
namespace {

constexpr double kFp32Nats = 1e-3;
constexpr double kUsualLogit = 8;  // the least of its binade
constexpr double kUlps = 2;
constexpr double kNoiseFactor = 2;

Tolerance with_noise(const ComparatorOptions& options, Tolerance tolerance) {
  const double noise = kNoiseFactor * options.noise.max.value_or(0);
  if (noise > tolerance.value) tolerance = {noise, fmt::format("{:g} x the golden's noise", kNoiseFactor)};
  return tolerance;
}

// A level that an engine declares comes as a tolerance of 0 too, and nobody wrote that one.
Tolerance given(double tolerance) {
  return {tolerance, tolerance == 0 ? "equal values are demanded" : "ASSAY.tolerance"};
}

}  // namespace

Tolerance logprob_tolerance(const ComparatorOptions& options) {
  if (options.tolerance) return given(*options.tolerance);
  if (options.dtype.empty() || options.dtype == "fp32") {
    return with_noise(options, {kFp32Nats, options.dtype.empty() ? "default" : "default of fp32"});
  }
  const double size = kUlps * ulp(*mantissa_bits(options.dtype), options.logit.value_or(kUsualLogit));
  if (size < kFp32Nats) return with_noise(options, {kFp32Nats, "default"});
  const std::string where = options.logit ? fmt::format("a logit of {:.4g}", *options.logit) : "logits of 8 to 16";
  return with_noise(options, {size, fmt::format("{:g} ULP of {} at {}", kUlps, options.dtype, where)});
}

Tolerance margin_tolerance(const ComparatorOptions& options) {
  if (options.tolerance) return given(*options.tolerance);
  const std::string dtype = options.dtype.empty() ? "fp32" : options.dtype;
  return with_noise(options,
                    {kUlps * ulp(*mantissa_bits(dtype), 1), fmt::format("{:g} ULP of {} scores", kUlps, dtype)});
}

}  // namespace assay::compare
