// Logarithm, power, sine and cosine in double, for tables and for one value a row: accurate rather than fast, and free
// of the C library, so that every machine gets the same bits. Relative error about 1e-15 inside the stated ranges.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace assay::arithmetic {

// Natural logarithm of a positive normal number; 0 gives -infinity, a negative number or NaN gives NaN.
double precise_log(double x);

// e^x for |x| < 700.
double precise_exp(double x);

struct SinCos {
  double sin;
  double cos;
};
// |angle| < 2^30 (radians).
SinCos precise_sin_cos(double angle);

// log(x) rounded to float; x is a positive sum.
float log_of_sum(float x);

// Inverse frequencies of RoPE, fp32 as Megatron has them: 1 / base^(2i/dimension), i in [0, dimension/2).
std::vector<float> inverse_frequencies(double base, size_t dimension);

// Fills cosine and sine (dimension/2 each) of position * inverse_frequency; the angle is an fp32 product.
void rotary_row(const std::vector<float>& inverse_frequency, uint32_t position, float* cosine, float* sine);

}  // namespace assay::arithmetic
