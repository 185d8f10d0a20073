// bf16 and fp16 numbers by integer arithmetic alone: the same bits on every machine, and
// on devices (constexpr functions may be called there).
#pragma once

#include <bit>
#include <cstdint>

namespace assay::arithmetic {

// Exact.
constexpr float from_bf16(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

// Round to nearest, ties to even; a NaN stays a (quiet) NaN.
constexpr uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

// The value rounded to the nearest bf16.
constexpr float round_bf16(float value) { return from_bf16(to_bf16(value)); }

// Exact, subnormals included.
constexpr float from_fp16(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
  const uint32_t magnitude = half & 0x7fffu;
  if (magnitude >= 0x7c00u) return std::bit_cast<float>(sign | 0x7f800000u | ((magnitude & 0x3ffu) << 13));
  if (magnitude >= 0x0400u) return std::bit_cast<float>(sign | ((magnitude << 13) + 0x38000000u));
  const float value = static_cast<float>(magnitude) * 0x1p-24f;  // subnormal: a multiple of 2^-24
  return sign != 0 ? -value : value;
}

}  // namespace assay::arithmetic
