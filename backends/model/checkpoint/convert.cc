#include "backends/model/checkpoint/convert.h"

#include <cassert>
#include <cstring>

namespace assay::model {
namespace {

template <class T>
T load(const std::byte* src, size_t index) {
  T value;
  std::memcpy(&value, src + index * sizeof(T), sizeof(T));
  return value;
}

template <class From, class To, class Fn>
void transform(const std::byte* src, void* dst, size_t count, Fn fn) {
  To* out = static_cast<To*>(dst);
  for (size_t i = 0; i < count; ++i) out[i] = fn(load<From>(src, i));
}

}  // namespace

float fp16_to_float(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000U) << 16;
  const uint32_t magnitude = bits & 0x7fffU;
  // The exponent is rebased by a multiplication with 2^112, which also normalises subnormals exactly.
  const float scaled = std::bit_cast<float>(magnitude << 13) * 0x1p112F;
  const uint32_t special = magnitude >= 0x7c00U ? 0x7f800000U : 0U;  // infinity and NaN
  return std::bit_cast<float>(std::bit_cast<uint32_t>(scaled) | special | sign);
}

uint16_t float_to_fp16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000U);
  const uint32_t magnitude = bits & 0x7fffffffU;
  if (magnitude > 0x7f800000U) return static_cast<uint16_t>(sign | 0x7e00U);
  if (magnitude >= 0x477ff000U) return static_cast<uint16_t>(sign | 0x7c00U);  // 65520 and above round to infinity
  if (magnitude < 0x38800000U) {                                               // below 2^-14: a subnormal result
    // Adding 0.5 leaves the value in units of 2^-24 in the low mantissa bits, rounded by the addition itself.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5F;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000U));
  }
  const uint32_t rebased = magnitude - 0x38000000U;
  return static_cast<uint16_t>(sign | ((rebased + 0xfffU + ((rebased >> 13) & 1U)) >> 13));
}

void convert_elements(const std::byte* src, Dtype from, void* dst, Dtype to, size_t count) {
  assert(from != Dtype::kOther && to != Dtype::kOther);
  if (count == 0) return;
  if (from == to) {
    std::memcpy(dst, src, count * dtype_size(from));
  } else if (from == Dtype::kBfloat16 && to == Dtype::kFloat32) {
    transform<uint16_t, float>(src, dst, count, [](uint16_t v) { return bf16_to_float(v); });
  } else if (from == Dtype::kFloat32 && to == Dtype::kBfloat16) {
    transform<float, uint16_t>(src, dst, count, [](float v) { return float_to_bf16(v); });
  } else if (from == Dtype::kFloat16 && to == Dtype::kFloat32) {
    transform<uint16_t, float>(src, dst, count, [](uint16_t v) { return fp16_to_float(v); });
  } else if (from == Dtype::kFloat32 && to == Dtype::kFloat16) {
    transform<float, uint16_t>(src, dst, count, [](float v) { return float_to_fp16(v); });
  } else if (from == Dtype::kFloat16) {
    transform<uint16_t, uint16_t>(src, dst, count, [](uint16_t v) { return float_to_bf16(fp16_to_float(v)); });
  } else {
    transform<uint16_t, uint16_t>(src, dst, count, [](uint16_t v) { return float_to_fp16(bf16_to_float(v)); });
  }
}

}  // namespace assay::model
