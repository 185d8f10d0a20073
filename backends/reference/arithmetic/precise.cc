#include "backends/reference/arithmetic/precise.h"

#include <bit>
#include <cmath>
#include <limits>

namespace assay::arithmetic {
namespace {

constexpr double kLn2High = 0x1.62e42fefa38p-1;  // 42 bits: n * high is exact for |n| < 2^11
constexpr double kLn2Low = 0x1.ef35793c76730p-45;

}  // namespace

// x = 2^e m with m in [sqrt(1/2), sqrt 2); log m = 2 artanh(s), s = (m-1)/(m+1), by its series to s^23.
double precise_log(double x) {
  if (x == 0) return -std::numeric_limits<double>::infinity();
  if (!(x > 0)) return std::numeric_limits<double>::quiet_NaN();
  if (x > std::numeric_limits<double>::max()) return x;
  const auto bits = std::bit_cast<uint64_t>(x);
  int64_t exponent = static_cast<int64_t>(bits >> 52) - 1023;
  double m = std::bit_cast<double>((bits & 0xfffffffffffffull) | 0x3ff0000000000000ull);
  if (m > 1.4142135623730951) {
    m *= 0.5;
    ++exponent;
  }
  const double s = (m - 1) / (m + 1);
  const double s2 = s * s;
  double series = 0;
  for (int n = 23; n >= 3; n -= 2) series = std::fma(series, s2, 1.0 / n);
  const double e = static_cast<double>(exponent);
  return e * kLn2High + (2 * s + (2 * s * s2 * series + e * kLn2Low));
}

double precise_exp(double x) {
  const double n = std::floor(x * 1.4426950408889634 + 0.5);
  double r = std::fma(n, -kLn2High, x);
  r = std::fma(n, -kLn2Low, r);
  double term = 0;  // Horner form of the Taylor series to r^14
  for (int k = 14; k >= 1; --k) term = (term + 1) * (r / k);
  const double scale = std::bit_cast<double>(static_cast<uint64_t>(static_cast<int64_t>(n) + 1023) << 52);
  return (1 + term) * scale;
}

// angle = n pi/2 + r with pi/2 in three parts; sine and cosine of |r| <= pi/4 by their Taylor series.
SinCos precise_sin_cos(double angle) {
  const double n = std::floor(angle * 0.63661977236758134 + 0.5);
  double r = std::fma(n, -0x1.921fb54442d18p+0, angle);
  r = std::fma(n, -0x1.1a62633145c07p-54, r);
  const double r2 = r * r;
  double s = 0;
  double c = 0;
  for (int k = 19; k >= 3; k -= 2) s = (s + 1) * (-r2 / (k * (k - 1)));
  for (int k = 20; k >= 2; k -= 2) c = (c + 1) * (-r2 / (k * (k - 1)));
  const double sine = r + r * s;
  const double cosine = 1 + c;
  switch (static_cast<int64_t>(n) & 3) {
    case 0:
      return {sine, cosine};
    case 1:
      return {cosine, -sine};
    case 2:
      return {-sine, -cosine};
    default:
      return {-cosine, sine};
  }
}

float log_of_sum(float x) { return static_cast<float>(precise_log(static_cast<double>(x))); }

std::vector<float> inverse_frequencies(double base, size_t dimension) {
  std::vector<float> result(dimension / 2);
  const double log_base = precise_log(base);
  for (size_t i = 0; i < result.size(); ++i) {
    const float exponent = static_cast<float>(2 * i) / static_cast<float>(dimension);
    const auto power = static_cast<float>(precise_exp(static_cast<double>(exponent) * log_base));
    result[i] = 1.0f / power;
  }
  return result;
}

void rotary_row(const std::vector<float>& inverse_frequency, uint32_t position, float* cosine, float* sine) {
  for (size_t i = 0; i < inverse_frequency.size(); ++i) {
    const float angle = static_cast<float>(position) * inverse_frequency[i];
    const SinCos value = precise_sin_cos(static_cast<double>(angle));
    cosine[i] = static_cast<float>(value.cos);
    sine[i] = static_cast<float>(value.sin);
  }
}

}  // namespace assay::arithmetic
