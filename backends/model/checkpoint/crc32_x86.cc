// Lanes folded by carry-less multiplication, after Gopal et al., "Fast CRC Computation for Generic Polynomials Using
// PCLMULQDQ Instruction" (Intel, 2009), with 128-bit or 512-bit registers; the last 16 bytes of the fold go back
// through the table version.
#include <immintrin.h>

#include "backends/model/checkpoint/crc32.h"

namespace assay::model {
namespace {

// x^n mod P in the reflected domain, as a 33-bit factor for a carry-less product of reflected operands.
constexpr int64_t power_mod(unsigned n) {
  constexpr uint32_t kPoly = 0xedb88320U;
  uint32_t value = 0x80000000U;  // x^0
  for (unsigned i = 0; i < n; ++i) value = (value >> 1) ^ ((value & 1U) != 0 ? kPoly : 0U);
  return static_cast<int64_t>(static_cast<uint64_t>(value) << 1);
}

// Moving 128 bits over a distance of d bits multiplies their low half (the higher powers) by x^(d+32) and their high
// half by x^(d-32).
struct Factors {
  int64_t low;
  int64_t high;
};
constexpr Factors factors(unsigned distance) { return {power_mod(distance + 32), power_mod(distance - 32)}; }
constexpr Factors kBy128 = factors(128);
constexpr Factors kBy512 = factors(512);
constexpr Factors kBy2048 = factors(2048);

__attribute__((target("pclmul,sse4.1"))) inline __m128i fold(__m128i value, __m128i next, Factors by) {
  const __m128i factor = _mm_set_epi64x(by.high, by.low);
  const __m128i low = _mm_clmulepi64_si128(value, factor, 0x00);
  const __m128i high = _mm_clmulepi64_si128(value, factor, 0x11);
  return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

// Four consecutive lanes to the register.
__attribute__((target("pclmul,sse4.1"))) uint32_t finish(__m128i (&lane)[4]) {
  for (int i = 1; i < 4; ++i) lane[i] = fold(lane[i - 1], lane[i], kBy128);
  alignas(16) std::byte rest[16];
  _mm_store_si128(reinterpret_cast<__m128i*>(rest), lane[3]);
  return ~crc32_portable(rest, ~0U);  // register 0 before the folded bytes
}

// `size` is a positive multiple of 64.
__attribute__((target("pclmul,sse4.1"))) uint32_t run_128(const std::byte* data, size_t size, uint32_t state) {
  const auto* block = reinterpret_cast<const __m128i*>(data);
  __m128i lane[4];
  for (int i = 0; i < 4; ++i) lane[i] = _mm_loadu_si128(block + i);
  lane[0] = _mm_xor_si128(lane[0], _mm_cvtsi32_si128(static_cast<int>(state)));
  block += 4;
  for (size_t left = size - 64; left >= 64; left -= 64, block += 4) {
    for (int i = 0; i < 4; ++i) lane[i] = fold(lane[i], _mm_loadu_si128(block + i), kBy512);
  }
  return finish(lane);
}

__attribute__((target("avx512f,vpclmulqdq"))) inline __m512i fold(__m512i value, __m512i next, __m512i by) {
  const __m512i low = _mm512_clmulepi64_epi128(value, by, 0x00);
  const __m512i high = _mm512_clmulepi64_epi128(value, by, 0x11);
  return _mm512_ternarylogic_epi64(low, high, next, 0x96);  // xor of the three
}

__attribute__((target("avx512f"))) inline __m512i broadcast(Factors by) {
  return _mm512_set_epi64(by.high, by.low, by.high, by.low, by.high, by.low, by.high, by.low);
}

// `size` is a positive multiple of 256.
__attribute__((target("avx512f,vpclmulqdq,pclmul,sse4.1"))) uint32_t run_512(const std::byte* data, size_t size,
                                                                             uint32_t state) {
  const __m512i by2048 = broadcast(kBy2048);
  const __m512i by512 = broadcast(kBy512);
  const std::byte* block = data;
  __m512i lane[4];
  for (int i = 0; i < 4; ++i) lane[i] = _mm512_loadu_si512(block + 64 * i);
  lane[0] = _mm512_xor_si512(lane[0], _mm512_set_epi64(0, 0, 0, 0, 0, 0, 0, static_cast<int64_t>(state)));
  block += 256;
  for (size_t left = size - 256; left >= 256; left -= 256, block += 256) {
    for (int i = 0; i < 4; ++i) lane[i] = fold(lane[i], _mm512_loadu_si512(block + 64 * i), by2048);
  }
  for (int i = 1; i < 4; ++i) lane[i] = fold(lane[i - 1], lane[i], by512);
  alignas(64) __m128i rest[4];
  _mm512_store_si512(rest, lane[3]);
  return finish(rest);
}

}  // namespace

uint32_t crc32_fast_prefix(std::span<const std::byte>& data, uint32_t state) {
  if (data.size() >= 256 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("vpclmulqdq")) {
    const size_t size = data.size() / 256 * 256;
    state = run_512(data.data(), size, state);
    data = data.subspan(size);
  }
  if (data.size() >= 64 && __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1")) {
    const size_t size = data.size() / 64 * 64;
    state = run_128(data.data(), size, state);
    data = data.subspan(size);
  }
  return state;
}

}  // namespace assay::model
