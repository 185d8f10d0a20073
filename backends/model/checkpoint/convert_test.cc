#include "backends/model/checkpoint/convert.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

namespace assay::model {
namespace {

// Value of fp16 bits from the definition: sign, 5 exponent bits of bias 15, 10 mantissa bits.
double fp16_value(uint16_t bits) {
  const int exponent = (bits >> 10) & 31;
  const int mantissa = bits & 1023;
  const double magnitude = exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

bool is_special_fp16(uint16_t bits) { return (bits & 0x7c00) == 0x7c00; }

TEST(Convert, EveryFp16ValueIsExactAndComesBack) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const float value = fp16_to_float(half);
    if (is_special_fp16(half)) {
      EXPECT_EQ(std::isnan(value), (half & 0x3ff) != 0) << bits;
      EXPECT_TRUE(std::isnan(value) || std::isinf(value)) << bits;
    } else {
      ASSERT_EQ(static_cast<double>(value), fp16_value(half)) << bits;
    }
    ASSERT_TRUE(std::isnan(value) || float_to_fp16(value) == half) << bits;
  }
}

TEST(Convert, Fp32ToFp16TakesTheNearestAndTiesToEven) {
  for (uint32_t bits = 0; bits < 0x7bff; ++bits) {  // every gap between neighbours
    const auto low = static_cast<uint16_t>(bits);
    const auto high = static_cast<uint16_t>(bits + 1);
    const auto middle = static_cast<float>((fp16_value(low) + fp16_value(high)) / 2);
    ASSERT_EQ(float_to_fp16(middle), (low & 1) != 0 ? high : low) << bits;
    ASSERT_EQ(float_to_fp16(std::nextafter(middle, 0.0F)), low) << bits;
    ASSERT_EQ(float_to_fp16(std::nextafter(middle, 1e9F)), high) << bits;
  }
  EXPECT_EQ(float_to_fp16(65519.996F), 0x7bff);
  EXPECT_EQ(float_to_fp16(65520.0F), 0x7c00);
  EXPECT_TRUE(std::isnan(fp16_to_float(float_to_fp16(std::numeric_limits<float>::quiet_NaN()))));
}

TEST(Convert, Fp32ToBf16TakesTheNearestAndTiesToEven) {
  std::mt19937 engine(3);
  for (int i = 0; i < 100000; ++i) {
    const auto low = static_cast<uint16_t>(engine() & 0x7f7fU);  // finite and positive
    if ((low & 0x7f80) == 0x7f80) continue;
    const uint32_t base = static_cast<uint32_t>(low) << 16;
    const uint16_t even = (low & 1) != 0 ? static_cast<uint16_t>(low + 1) : low;
    ASSERT_EQ(float_to_bf16(std::bit_cast<float>(base)), low);
    ASSERT_EQ(float_to_bf16(std::bit_cast<float>(base + 0x7fffU)), low);
    ASSERT_EQ(float_to_bf16(std::bit_cast<float>(base + 0x8000U)), even);
    ASSERT_EQ(float_to_bf16(std::bit_cast<float>(base + 0x8001U)), low + 1);
    ASSERT_EQ(float_to_bf16(-std::bit_cast<float>(base + 0x8001U)), (low + 1) | 0x8000);
  }
  EXPECT_EQ(float_to_bf16(std::numeric_limits<float>::infinity()), 0x7f80);
  EXPECT_EQ(float_to_bf16(std::numeric_limits<float>::max()), 0x7f80);
  EXPECT_TRUE(std::isnan(bf16_to_float(float_to_bf16(std::bit_cast<float>(0x7f800001U)))));
}

TEST(Convert, ReadsFromAnyAlignment) {
  const std::vector<float> values = {1.5F, -2.25F, 3.0F, 0.0F, 65504.0F};
  for (size_t shift = 0; shift < 5; ++shift) {
    std::vector<std::byte> raw(values.size() * 4 + shift);
    std::memcpy(raw.data() + shift, values.data(), values.size() * 4);
    std::vector<uint16_t> half(values.size());
    convert_elements(raw.data() + shift, Dtype::kFloat32, half.data(), Dtype::kFloat16, values.size());
    std::vector<std::byte> raw_half(half.size() * 2 + shift);
    std::memcpy(raw_half.data() + shift, half.data(), half.size() * 2);
    std::vector<float> back(values.size());
    convert_elements(raw_half.data() + shift, Dtype::kFloat16, back.data(), Dtype::kFloat32, half.size());
    EXPECT_EQ(back, values) << shift;
    std::vector<uint16_t> brain(values.size());
    convert_elements(raw_half.data() + shift, Dtype::kFloat16, brain.data(), Dtype::kBfloat16, half.size());
    EXPECT_EQ(brain[1], 0xc010);  // -2.25
    EXPECT_EQ(brain[4], 0x4780);  // 65504 rounds to 65536
  }
}

}  // namespace
}  // namespace assay::model
