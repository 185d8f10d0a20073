// Sixteen lanes in one AVX-512 register. Included by kernels_avx512.cc alone.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

namespace assay::cpu {

#define ASSAY_LANE [[gnu::always_inline]] static inline

struct Avx512Lanes {
  using F = __m512;
  using I = __m512i;
  using M = __mmask16;
  static constexpr int kRowsAlone = 4;  // register tile: rows x tokens
  static constexpr int kRows = 4;
  static constexpr int kTokens = 4;

  ASSAY_LANE F set(float v) { return _mm512_set1_ps(v); }
  ASSAY_LANE F add(F a, F b) { return _mm512_add_ps(a, b); }
  ASSAY_LANE F sub(F a, F b) { return _mm512_sub_ps(a, b); }
  ASSAY_LANE F mul(F a, F b) { return _mm512_mul_ps(a, b); }
  ASSAY_LANE F div(F a, F b) { return _mm512_div_ps(a, b); }
  ASSAY_LANE F fma(F a, F b, F c) { return _mm512_fmadd_ps(a, b, c); }
  ASSAY_LANE F lesser(F a, F b) { return _mm512_min_ps(a, b); }   // b where unordered
  ASSAY_LANE F greater(F a, F b) { return _mm512_max_ps(a, b); }  // b where unordered
  ASSAY_LANE F absolute(F a) { return floats(_mm512_and_si512(bits(a), iset(0x7fffffffu))); }
  ASSAY_LANE F negate(F a) { return floats(_mm512_xor_si512(bits(a), iset(0x80000000u))); }
  ASSAY_LANE M below(F a, F b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
  ASSAY_LANE F pick(M m, F yes, F no) { return _mm512_mask_blend_ps(m, no, yes); }
  ASSAY_LANE I bits(F a) { return _mm512_castps_si512(a); }
  ASSAY_LANE F floats(I a) { return _mm512_castsi512_ps(a); }
  ASSAY_LANE I iset(uint32_t v) { return _mm512_set1_epi32(static_cast<int>(v)); }
  ASSAY_LANE I iadd(I a, I b) { return _mm512_add_epi32(a, b); }
  ASSAY_LANE I isub(I a, I b) { return _mm512_sub_epi32(a, b); }
  ASSAY_LANE I half(I a) { return _mm512_srai_epi32(a, 1); }
  ASSAY_LANE I to_exponent(I a) { return _mm512_slli_epi32(a, 23); }

  ASSAY_LANE M first(size_t n) { return static_cast<M>((1u << n) - 1u); }
  ASSAY_LANE F load(const float* p) { return _mm512_loadu_ps(p); }
  ASSAY_LANE F load_some(const float* p, size_t n) { return _mm512_maskz_loadu_ps(first(n), p); }
  ASSAY_LANE F load_bf16(const uint16_t* p) {
    const __m256i raw = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    return floats(_mm512_slli_epi32(_mm512_cvtepu16_epi32(raw), 16));
  }
  ASSAY_LANE F load_fp16(const uint16_t* p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  ASSAY_LANE void store(float* p, F a) { _mm512_storeu_ps(p, a); }
  ASSAY_LANE void store_some(float* p, F a, size_t n) { _mm512_mask_storeu_ps(p, first(n), a); }
  // Round to nearest even on the upper half by integers; a NaN becomes the quiet NaN of its upper half.
  ASSAY_LANE F round_bf16(F a) {
    const I raw = bits(a);
    const I odd = _mm512_and_si512(_mm512_srli_epi32(raw, 16), iset(1));
    const I rounded = iadd(iadd(raw, iset(0x7fff)), odd);
    const M nan = _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q);
    const I quiet = _mm512_or_si512(raw, iset(0x400000));
    return floats(_mm512_and_si512(_mm512_mask_blend_epi32(nan, rounded, quiet), iset(0xffff0000u)));
  }
  ASSAY_LANE float tree(F a) {
    const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
  }
  // y[i] = tree(sixteen floats at 16 * i) for sixteen of them: pairs are put side by side, so that one addition serves
  // both. Which vectors are paired makes the results come out in order.
  ASSAY_LANE void trees(const float* lanes, float* y) {
    const auto half = [](F a, F b) { return add(_mm512_shuffle_f32x4(a, b, 0x44), _mm512_shuffle_f32x4(a, b, 0xee)); };
    const auto quarter = [](F a, F b) {
      return add(_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xdd));
    };
    const auto eighth = [](F a, F b) { return add(_mm512_shuffle_ps(a, b, 0x44), _mm512_shuffle_ps(a, b, 0xee)); };
    const auto last = [](F a, F b) { return add(_mm512_shuffle_ps(a, b, 0x88), _mm512_shuffle_ps(a, b, 0xdd)); };
    const auto four = [&](int i) {
      const float* p = lanes + 16 * i;
      return quarter(half(load(p), load(p + 64)), half(load(p + 128), load(p + 192)));
    };
    store(y, last(eighth(four(0), four(1)), eighth(four(2), four(3))));
  }
  ASSAY_LANE float largest(F a) { return _mm512_reduce_max_ps(a); }
  ASSAY_LANE void prefetch(const void* p) { _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T0); }
};

}  // namespace assay::cpu
