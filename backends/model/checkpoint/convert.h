// Conversion between the three weight dtypes, from bytes at any alignment.
#pragma once

#include <bit>
#include <cstdint>

#include "backends/model/checkpoint/dtype.h"

namespace assay::model {

// Exact.
inline float bf16_to_float(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

// Round to nearest, ties to even; overflow gives infinity; a NaN stays a (quiet) NaN of the same sign.
inline uint16_t float_to_bf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const bool nan = (bits & 0x7fffffffU) > 0x7f800000U;
  const uint32_t rounded = bits + 0x7fffU + ((bits >> 16) & 1U);
  return static_cast<uint16_t>(nan ? (bits >> 16) | 0x0040U : rounded >> 16);
}

// Exact, subnormals included.
float fp16_to_float(uint16_t bits);

// Round to nearest, ties to even, subnormals included; overflow gives infinity; a NaN stays a NaN.
uint16_t float_to_fp16(float value);

// Converts `count` elements. `src` may have any alignment; `dst` is aligned for `to`; both are row-major and must not
// overlap. Neither dtype may be kOther. Equal dtypes: a plain copy. bf16 <-> fp16 passes through fp32.
void convert_elements(const std::byte* src, Dtype from, void* dst, Dtype to, size_t count);

}  // namespace assay::model
