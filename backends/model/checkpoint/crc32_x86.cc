// Four 128-bit lanes folded by PCLMULQDQ, after Gopal et al., "Fast CRC Computation for Generic Polynomials Using
// PCLMULQDQ Instruction" (Intel, 2009); the last 16 bytes go back through the table version.
#include <immintrin.h>

#include "backends/model/checkpoint/crc32.h"

namespace assay::model {
namespace {

// x^n mod P in the reflected domain, as a 33-bit factor for a carry-less product of reflected operands.
constexpr uint64_t power_mod(unsigned n) {
  constexpr uint32_t kPoly = 0xedb88320U;
  uint32_t value = 0x80000000U;  // x^0
  for (unsigned i = 0; i < n; ++i) value = (value >> 1) ^ ((value & 1U) != 0 ? kPoly : 0U);
  return static_cast<uint64_t>(value) << 1;
}

// Folding over d bits multiplies the low half (the higher powers) by x^(d+32) and the high half by x^(d-32).
constexpr uint64_t kFold512Low = power_mod(512 + 32);
constexpr uint64_t kFold512High = power_mod(512 - 32);
constexpr uint64_t kFold128Low = power_mod(128 + 32);
constexpr uint64_t kFold128High = power_mod(128 - 32);

__attribute__((target("pclmul,sse4.1"))) inline __m128i fold(__m128i value, __m128i next, __m128i factors) {
  const __m128i low = _mm_clmulepi64_si128(value, factors, 0x00);
  const __m128i high = _mm_clmulepi64_si128(value, factors, 0x11);
  return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

__attribute__((target("pclmul,sse4.1"))) uint32_t run_clmul(const std::byte* data, size_t size, uint32_t state) {
  const auto* block = reinterpret_cast<const __m128i*>(data);
  const __m128i by512 = _mm_set_epi64x(static_cast<int64_t>(kFold512High), static_cast<int64_t>(kFold512Low));
  const __m128i by128 = _mm_set_epi64x(static_cast<int64_t>(kFold128High), static_cast<int64_t>(kFold128Low));
  __m128i lane[4];
  for (int i = 0; i < 4; ++i) lane[i] = _mm_loadu_si128(block + i);
  lane[0] = _mm_xor_si128(lane[0], _mm_cvtsi32_si128(static_cast<int>(state)));
  block += 4;
  for (size_t left = size - 64; left >= 64; left -= 64, block += 4) {
    for (int i = 0; i < 4; ++i) lane[i] = fold(lane[i], _mm_loadu_si128(block + i), by512);
  }
  for (int i = 1; i < 4; ++i) lane[i] = fold(lane[i - 1], lane[i], by128);
  alignas(16) std::byte rest[16];
  _mm_store_si128(reinterpret_cast<__m128i*>(rest), lane[3]);
  return ~crc32_portable(rest, ~0U);  // register 0 before the folded bytes
}

}  // namespace

uint32_t crc32_fast_prefix(std::span<const std::byte>& data, uint32_t state) {
  if (data.size() < 64 || !__builtin_cpu_supports("pclmul") || !__builtin_cpu_supports("sse4.1")) return state;
  const size_t size = data.size() / 64 * 64;
  state = run_clmul(data.data(), size, state);
  data = data.subspan(size);
  return state;
}

}  // namespace assay::model
