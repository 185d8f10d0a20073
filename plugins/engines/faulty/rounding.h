// Numbers as a narrower type would hold them, in steps of its mantissa; no range limits.
#pragma once

#include <cmath>

namespace assay::engines {

// `value` rounded to `bits` of mantissa, the hidden one included: 8 for bf16, 11 for fp16. Ties to even.
inline double round_mantissa(double value, int bits) {
  int exponent = 0;
  const double fraction = std::frexp(value, &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(fraction, bits)), exponent - bits);
}

// The same, cut off towards zero.
inline double truncate_mantissa(double value, int bits) {
  int exponent = 0;
  const double fraction = std::frexp(value, &exponent);
  return std::ldexp(std::trunc(std::ldexp(fraction, bits)), exponent - bits);
}

}  // namespace assay::engines
