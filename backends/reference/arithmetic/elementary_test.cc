#include "backends/reference/arithmetic/elementary.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>

#include "backends/reference/arithmetic/formats.h"
#include "backends/reference/arithmetic/precise.h"

namespace assay::arithmetic {
namespace {

// Units in the last place of the float nearest to `expected`.
double ulps(float actual, long double expected) {
  const auto rounded = static_cast<float>(expected);
  const float size = std::max(std::abs(rounded), 0x1p-126f);
  const long double unit = std::nextafter(size, INFINITY) - size;
  return static_cast<double>(std::abs(static_cast<long double>(actual) - expected) / unit);
}

// Largest error over every 257th float of [low, high].
template <class Function, class Exact>
double largest_error(float low, float high, Function function, Exact exact) {
  double worst = 0;
  for (uint32_t bits = 0; bits < 0xff800000u; bits += 257) {
    const auto x = std::bit_cast<float>(bits);
    if (!(x >= low && x <= high)) continue;
    worst = std::max(worst, ulps(function(x), exact(static_cast<long double>(x))));
  }
  return worst;
}

TEST(Elementary, ExponentialIsWithinOneAndAHalfUlp) {
  const double error = largest_error(-103.0f, 88.7f, exponential<Single>, [](long double x) { return std::exp(x); });
  std::printf("exp: max %.3f ulp\n", error);
  EXPECT_LT(error, 1.5);
}

TEST(Elementary, ExponentialHasTheRightEnds) {
  EXPECT_EQ(exponential<Single>(0.0f), 1.0f);
  EXPECT_EQ(exponential<Single>(-INFINITY), 0.0f);
  EXPECT_EQ(exponential<Single>(INFINITY), INFINITY);
  EXPECT_TRUE(std::isnan(exponential<Single>(NAN)));
}

TEST(Elementary, SigmoidIsWithinThreeUlp) {
  const double error =
      largest_error(-87.0f, 100.0f, sigmoid<Single>, [](long double x) { return 1 / (1 + std::exp(-x)); });
  std::printf("sigmoid: max %.3f ulp\n", error);
  EXPECT_LT(error, 3);
  EXPECT_EQ(sigmoid<Single>(-INFINITY), 0.0f);
  EXPECT_EQ(sigmoid<Single>(INFINITY), 1.0f);
}

TEST(Elementary, ErrorFunctionIsWithinTwoAndAHalfUlp) {
  const double error = largest_error(-6.0f, 6.0f, error_function<Single>, [](long double x) { return std::erf(x); });
  std::printf("erf: max %.3f ulp\n", error);
  EXPECT_LT(error, 2.5);
}

// The activations are x times something in [0, 1]: the error is stated relative to |x|, in units of 2^-24.
TEST(Elementary, ActivationsAreWithinFourRoundingsOfTheirArgument) {
  double erf_error = 0;
  double tanh_error = 0;
  double silu_error = 0;
  for (float x = -12.0f; x < 12.0f; x += 0.00037f) {
    const long double v = x;
    const long double unit = std::abs(v) * 0x1p-24L;
    if (unit == 0) continue;
    const long double u = std::sqrt(2 / std::acos(-1.0L)) * (v + 0.044715L * v * v * v);
    const auto error = [&](float actual, long double exact) {
      return static_cast<double>(std::abs(static_cast<long double>(actual) - exact) / unit);
    };
    erf_error = std::max(erf_error, error(gelu_erf<Single>(x), v / 2 * (1 + std::erf(v / std::sqrt(2.0L)))));
    tanh_error = std::max(tanh_error, error(gelu_tanh<Single>(x), v / 2 * (1 + std::tanh(u))));
    silu_error = std::max(silu_error, error(silu<Single>(x), v / (1 + std::exp(-v))));
  }
  std::printf("gelu_erf %.3f, gelu_tanh %.3f, silu %.3f roundings of x\n", erf_error, tanh_error, silu_error);
  EXPECT_LT(erf_error, 4);
  EXPECT_LT(tanh_error, 4);
  EXPECT_LT(silu_error, 4);
  EXPECT_EQ(squared_relu<Single>(-3.0f), 0.0f);
  EXPECT_EQ(squared_relu<Single>(3.0f), 9.0f);
}

TEST(Precise, SineAndCosineAreRightToTheLastFloatBitUpToAMillion) {
  double worst = 0;
  for (double x = 0; x < 1.1e6; x = x * 1.0001 + 0.01) {
    const auto angle = static_cast<float>(x);
    const SinCos value = precise_sin_cos(static_cast<double>(angle));
    const auto exact = static_cast<long double>(angle);
    worst = std::max(worst, static_cast<double>(std::abs(static_cast<long double>(value.sin) - std::sin(exact))));
    worst = std::max(worst, static_cast<double>(std::abs(static_cast<long double>(value.cos) - std::cos(exact))));
  }
  std::printf("sin, cos: max absolute error %.2e\n", worst);
  EXPECT_LT(worst, 1e-15);
}

TEST(Precise, LogarithmAndExponentialAreWithinAFewUlpOfDouble) {
  double worst = 0;
  for (double x = 1e-12; x < 1e12; x *= 1.01) {
    const long double exact = std::log(static_cast<long double>(x));
    const double scale = std::max(1e-3, static_cast<double>(std::abs(exact)));
    worst = std::max(worst, static_cast<double>(std::abs(static_cast<long double>(precise_log(x)) - exact)) / scale);
    const double y = precise_log(x);
    const long double power = std::exp(static_cast<long double>(y));
    worst = std::max(worst, static_cast<double>(std::abs(static_cast<long double>(precise_exp(y)) - power) / power));
  }
  std::printf("log, exp in double: max relative error %.2e\n", worst);
  EXPECT_LT(worst, 2e-15);
  EXPECT_EQ(precise_log(0), -INFINITY);
  EXPECT_TRUE(std::isnan(precise_log(-1)));
}

TEST(Formats, EveryBf16AndFp16ValueSurvivesTheWayThroughFloat) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = from_bf16(static_cast<uint16_t>(bits));
    if (!std::isnan(value)) {
      EXPECT_EQ(to_bf16(value), bits);
    }
    const float half = from_fp16(static_cast<uint16_t>(bits));
    const int exponent = static_cast<int>((bits >> 10) & 31u);
    const double mantissa = (bits & 1023u) / 1024.0;
    if (exponent == 31) continue;
    const double exact = exponent == 0 ? std::ldexp(mantissa, -14) : std::ldexp(1 + mantissa, exponent - 15);
    EXPECT_EQ(static_cast<double>(half), (bits & 0x8000u) != 0 ? -exact : exact);
  }
}

TEST(Formats, Bf16RoundsTiesToEven) {
  EXPECT_EQ(to_bf16(std::bit_cast<float>(0x3f808000u)), 0x3f80);
  EXPECT_EQ(to_bf16(std::bit_cast<float>(0x3f818000u)), 0x3f82);
  EXPECT_EQ(to_bf16(std::bit_cast<float>(0x3f808001u)), 0x3f81);
  EXPECT_TRUE(std::isnan(round_bf16(NAN)));
  EXPECT_EQ(round_bf16(INFINITY), INFINITY);
}

}  // namespace
}  // namespace assay::arithmetic
