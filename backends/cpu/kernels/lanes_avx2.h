// Sixteen lanes in two AVX registers. Included by kernels_avx2.cc alone.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

namespace assay::cpu {

#define ASSAY_LANE [[gnu::always_inline]] static inline

struct Avx2Lanes {
  struct F {
    __m256 a, b;
  };
  struct I {
    __m256i a, b;
  };
  using M = F;
  static constexpr int kRowsAlone = 4;  // register tile: rows x tokens
  static constexpr int kRows = 2;
  static constexpr int kTokens = 2;

  ASSAY_LANE F set(float v) { return {_mm256_set1_ps(v), _mm256_set1_ps(v)}; }
  ASSAY_LANE F add(F x, F y) { return {_mm256_add_ps(x.a, y.a), _mm256_add_ps(x.b, y.b)}; }
  ASSAY_LANE F sub(F x, F y) { return {_mm256_sub_ps(x.a, y.a), _mm256_sub_ps(x.b, y.b)}; }
  ASSAY_LANE F mul(F x, F y) { return {_mm256_mul_ps(x.a, y.a), _mm256_mul_ps(x.b, y.b)}; }
  ASSAY_LANE F div(F x, F y) { return {_mm256_div_ps(x.a, y.a), _mm256_div_ps(x.b, y.b)}; }
  ASSAY_LANE F fma(F x, F y, F z) { return {_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b)}; }
  ASSAY_LANE F lesser(F x, F y) { return {_mm256_min_ps(x.a, y.a), _mm256_min_ps(x.b, y.b)}; }   // y where unordered
  ASSAY_LANE F greater(F x, F y) { return {_mm256_max_ps(x.a, y.a), _mm256_max_ps(x.b, y.b)}; }  // y where unordered
  ASSAY_LANE F absolute(F x) {
    const __m256 mask = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fffffff));
    return {_mm256_and_ps(x.a, mask), _mm256_and_ps(x.b, mask)};
  }
  ASSAY_LANE F negate(F x) {
    const __m256 sign = _mm256_set1_ps(-0.0f);
    return {_mm256_xor_ps(x.a, sign), _mm256_xor_ps(x.b, sign)};
  }
  ASSAY_LANE M below(F x, F y) { return {_mm256_cmp_ps(x.a, y.a, _CMP_LT_OQ), _mm256_cmp_ps(x.b, y.b, _CMP_LT_OQ)}; }
  ASSAY_LANE F pick(M m, F yes, F no) {
    return {_mm256_blendv_ps(no.a, yes.a, m.a), _mm256_blendv_ps(no.b, yes.b, m.b)};
  }
  ASSAY_LANE I bits(F x) { return {_mm256_castps_si256(x.a), _mm256_castps_si256(x.b)}; }
  ASSAY_LANE F floats(I x) { return {_mm256_castsi256_ps(x.a), _mm256_castsi256_ps(x.b)}; }
  ASSAY_LANE I iset(uint32_t v) {
    return {_mm256_set1_epi32(static_cast<int>(v)), _mm256_set1_epi32(static_cast<int>(v))};
  }
  ASSAY_LANE I iadd(I x, I y) { return {_mm256_add_epi32(x.a, y.a), _mm256_add_epi32(x.b, y.b)}; }
  ASSAY_LANE I isub(I x, I y) { return {_mm256_sub_epi32(x.a, y.a), _mm256_sub_epi32(x.b, y.b)}; }
  ASSAY_LANE I half(I x) { return {_mm256_srai_epi32(x.a, 1), _mm256_srai_epi32(x.b, 1)}; }
  ASSAY_LANE I to_exponent(I x) { return {_mm256_slli_epi32(x.a, 23), _mm256_slli_epi32(x.b, 23)}; }

  ASSAY_LANE F load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
  ASSAY_LANE __m256i first(size_t n) {  // all ones in the lanes below n
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  }
  ASSAY_LANE F load_some(const float* p, size_t n) {
    const size_t upper = n > 8 ? n - 8 : 0;
    return {_mm256_maskload_ps(p, first(n)), _mm256_maskload_ps(p + 8, first(upper))};
  }
  ASSAY_LANE __m256 bf16_half(const uint16_t* p) {
    const __m128i raw = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(raw), 16));
  }
  ASSAY_LANE F load_bf16(const uint16_t* p) { return {bf16_half(p), bf16_half(p + 8)}; }
  ASSAY_LANE F load_fp16(const uint16_t* p) {
    return {_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))),
            _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 8)))};
  }
  ASSAY_LANE void store(float* p, F x) {
    _mm256_storeu_ps(p, x.a);
    _mm256_storeu_ps(p + 8, x.b);
  }
  ASSAY_LANE void store_some(float* p, F x, size_t n) {
    const size_t upper = n > 8 ? n - 8 : 0;
    _mm256_maskstore_ps(p, first(n), x.a);
    _mm256_maskstore_ps(p + 8, first(upper), x.b);
  }
  // Round to nearest even on the upper half by integers; a NaN becomes the quiet NaN of its upper half.
  ASSAY_LANE __m256 round_half(__m256 x) {
    const __m256i raw = _mm256_castps_si256(x);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(raw, 16), _mm256_set1_epi32(1));
    const __m256i rounded = _mm256_add_epi32(_mm256_add_epi32(raw, _mm256_set1_epi32(0x7fff)), odd);
    const __m256i quiet = _mm256_or_si256(raw, _mm256_set1_epi32(0x400000));
    const __m256 nan = _mm256_cmp_ps(x, x, _CMP_UNORD_Q);
    const __m256 chosen = _mm256_blendv_ps(_mm256_castsi256_ps(rounded), _mm256_castsi256_ps(quiet), nan);
    return _mm256_and_ps(chosen, _mm256_castsi256_ps(_mm256_set1_epi32(static_cast<int>(0xffff0000u))));
  }
  ASSAY_LANE F round_bf16(F x) { return {round_half(x.a), round_half(x.b)}; }
  ASSAY_LANE float tree(F x) {
    const __m256 eight = _mm256_add_ps(x.a, x.b);
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
  }
  // y[i] = tree(sixteen floats at 16 * i) for sixteen of them.
  ASSAY_LANE void trees(const float* lanes, float* y) {
    for (int i = 0; i < 16; ++i) y[i] = tree(load(lanes + 16 * i));
  }
  ASSAY_LANE float largest(F x) {
    const __m256 eight = _mm256_max_ps(x.a, x.b);
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
  }
  ASSAY_LANE void prefetch(const void* p) { _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T0); }
};

}  // namespace assay::cpu
