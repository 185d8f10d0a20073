#include "core/compare/ulp.h"

#include <algorithm>
#include <cmath>

namespace assay::compare {

std::optional<int> mantissa_bits(std::string_view dtype) {
  if (dtype == "fp32") return kFp32Mantissa;
  if (dtype == "fp16") return kFp16Mantissa;
  if (dtype == "bf16") return kBf16Mantissa;
  return std::nullopt;
}

double ulp(int mantissa, double magnitude) {
  constexpr int kLeastExponent = -14;
  const double size = std::fabs(magnitude);
  const int exponent = size > 0 ? std::max(std::ilogb(size), kLeastExponent) : kLeastExponent;
  return std::ldexp(1.0, exponent + 1 - mantissa);
}

}  // namespace assay::compare
