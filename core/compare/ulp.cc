#include "core/compare/ulp.h"

#include <algorithm>
#include <cmath>

namespace assay::compare {

std::optional<int> mantissa_bits(std::string_view dtype) {
  if (dtype == "fp32") return 24;
  if (dtype == "fp16") return 11;
  if (dtype == "bf16") return 8;
  return std::nullopt;
}

double ulp(int mantissa, double magnitude) {
  constexpr int kLeastExponent = -14;
  const double size = std::fabs(magnitude);
  const int exponent = size > 0 ? std::max(std::ilogb(size), kLeastExponent) : kLeastExponent;
  return std::ldexp(1.0, exponent + 1 - mantissa);
}

}  // namespace assay::compare
