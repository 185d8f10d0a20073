// One split of attention, and putting splits together, in the order of arithmetic/attend.h.
#pragma once

#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/kernels/loaders.h"
#include "backends/cpu/kernels/matmul_impl.h"
#include "backends/reference/arithmetic/elementary.h"

namespace assay::cpu {

// Sixteen channels at k for Q queries and N keys: `some` of them, the rest count as zero.
template <class V, class W, int Q, int N, bool kWhole>
[[gnu::always_inline]] inline void key_step(const float* const* query, const void* const* keys, size_t k, size_t some,
                                            typename V::F (&lanes)[Q][N]) {
  using F = typename V::F;
  F in[Q];
#pragma GCC unroll 8
  for (int q = 0; q < Q; ++q) in[q] = kWhole ? V::load(query[q] + k) : V::load_some(query[q] + k, some);
#pragma GCC unroll 8
  for (int i = 0; i < N; ++i) {
    const auto* key = static_cast<const typename W::Stored*>(keys[i]) + k;
    const F column = kWhole ? W::load(key) : W::load_some(key, some);
#pragma GCC unroll 8
    for (int q = 0; q < Q; ++q) lanes[q][i] = V::fma(in[q], column, lanes[q][i]);
  }
}

// out[q][i] = dot(query q, keys[i]) for Q queries and N keys; rows of out are kDotBlock apart.
template <class V, class W, int Q, int N>
[[gnu::always_inline]] inline void key_dots(const float* const* query, const void* const* keys, size_t channels,
                                            float* out) {
  using F = typename V::F;
  F totals[Q][N];
#pragma GCC unroll 8
  for (int q = 0; q < Q; ++q) {
#pragma GCC unroll 8
    for (int i = 0; i < N; ++i) totals[q][i] = V::set(0.0f);
  }
  for (size_t block = 0; block < channels; block += kDotBlock) {
    const size_t end = block + kDotBlock < channels ? block + kDotBlock : channels;
    F lanes[Q][N];
#pragma GCC unroll 8
    for (int q = 0; q < Q; ++q) {
#pragma GCC unroll 8
      for (int i = 0; i < N; ++i) lanes[q][i] = V::set(0.0f);
    }
    size_t k = block;
    for (; k + 16 <= end; k += 16) key_step<V, W, Q, N, true>(query, keys, k, 16, lanes);
    if (k < end) key_step<V, W, Q, N, false>(query, keys, k, end - k, lanes);
#pragma GCC unroll 8
    for (int q = 0; q < Q; ++q) {
#pragma GCC unroll 8
      for (int i = 0; i < N; ++i) totals[q][i] = V::add(totals[q][i], lanes[q][i]);
    }
  }
  for (int q = 0; q < Q; ++q) {
    for (int i = 0; i < N; ++i)
      out[static_cast<size_t>(q) * kDotBlock + static_cast<size_t>(i)] = V::tree(totals[q][i]);
  }
}

// Sum of e[0 .. count), count <= 256: the dot with ones.
template <class V>
inline float block_sum(const float* e, size_t count) {
  typename V::F lanes = V::set(0.0f);
  size_t j = 0;
  for (; j + 16 <= count; j += 16) lanes = V::add(lanes, V::load(e + j));
  if (j < count) lanes = V::add(lanes, V::load_some(e + j, count - j));
  return V::tree(V::add(V::set(0.0f), lanes));
}

// Adds values [begin, end) weighted by e, ascending, to C times sixteen channels from d on (n of them real where C is
// 1) for Q queries; rows of e are kDotBlock apart. The sums start at begin 0 from +0.
template <class V, class W, int Q, int C>
[[gnu::always_inline]] inline void weigh(const float* e, const void* const* values, size_t begin, size_t end, size_t d,
                                         size_t n, float* const* out) {
  using F = typename V::F;
  using Stored = typename W::Stored;
  F sums[Q][C];
#pragma GCC unroll 8
  for (int q = 0; q < Q; ++q) {
#pragma GCC unroll 8
    for (int c = 0; c < C; ++c) {
      sums[q][c] = begin == 0 ? V::set(0.0f) : V::load_some(out[q] + d + 16 * static_cast<size_t>(c), n);
    }
  }
  for (size_t j = begin; j < end; ++j) {
    const Stored* value = static_cast<const Stored*>(values[j]) + d;
    F in[C];
#pragma GCC unroll 8
    for (int c = 0; c < C; ++c) in[c] = C > 1 || n == 16 ? W::load(value + 16 * c) : W::load_some(value, n);
#pragma GCC unroll 8
    for (int q = 0; q < Q; ++q) {
      const F weight = V::set(e[static_cast<size_t>(q) * kDotBlock + j]);
#pragma GCC unroll 8
      for (int c = 0; c < C; ++c) sums[q][c] = V::fma(weight, in[c], sums[q][c]);
    }
  }
#pragma GCC unroll 8
  for (int q = 0; q < Q; ++q) {
#pragma GCC unroll 8
    for (int c = 0; c < C; ++c) V::store_some(out[q] + d + 16 * static_cast<size_t>(c), sums[q][c], n);
  }
}

template <class V, class W, int Q>
void weigh_all(const float* e, const void* const* values, size_t begin, size_t end, size_t channels,
               float* const* out) {
  constexpr int kChunks = Q == 1 ? 4 : V::kRows;
  size_t d = 0;
  for (; d + 16 * kChunks <= channels; d += 16 * kChunks) weigh<V, W, Q, kChunks>(e, values, begin, end, d, 16, out);
  for (; d < channels; d += 16) {
    weigh<V, W, Q, 1>(e, values, begin, end, d, channels - d < 16 ? channels - d : 16, out);
  }
}

// e = exp(e * scale - maximum) for one query; result[channels] = maximum, result[channels + 1] = sum of e.
template <class V>
inline void soften(float* e, size_t count, float scale, float* scalars) {
  size_t j = 0;
  for (; j < count; ++j) e[j] = e[j] * scale;
  float top = e[0];
  for (j = 1; j < count; ++j) top = e[j] > top ? e[j] : top;
  const typename V::F shift = V::set(top);
  for (j = 0; j < count; j += 16) {
    const size_t n = count - j < 16 ? count - j : 16;
    V::store_some(e + j, arithmetic::exponential<V>(V::sub(V::load_some(e + j, n), shift)), n);
  }
  scalars[0] = top;
  scalars[1] = block_sum<V>(e, count);
}

// Queries [first, first + Q): scores of all keys that any of them sees, then each query's own part of them.
template <class V, class W, int Q>
void attend_some(const AttendArgs& a, size_t first) {
  constexpr int kKeys = Q == 1 ? 4 : V::kRows;
  const float* const* query = a.query + first;
  const size_t* counts = a.counts + first;
  float* const* result = a.result + first;
  size_t least = counts[0];
  size_t most = counts[0];
  for (int q = 1; q < Q; ++q) {
    least = counts[q] < least ? counts[q] : least;
    most = counts[q] > most ? counts[q] : most;
  }
  alignas(64) float e[Q * kDotBlock] = {};
  size_t j = 0;
  for (; j + kKeys <= most; j += kKeys) key_dots<V, W, Q, kKeys>(query, a.keys + j, a.channels, e + j);
  for (; j < most; ++j) key_dots<V, W, Q, 1>(query, a.keys + j, a.channels, e + j);
  for (size_t q = 0; q < Q; ++q) soften<V>(e + q * kDotBlock, counts[q], a.scale, result[q] + a.channels);
  weigh_all<V, W, Q>(e, a.values, 0, least, a.channels, result);
  for (size_t q = 0; q < Q; ++q) {
    if (counts[q] > least) {
      weigh_all<V, W, 1>(e + q * kDotBlock, a.values, least, counts[q], a.channels, result + q);
    }
  }
}

template <class V, class W>
void attend(const AttendArgs& a) {
  size_t q = 0;
  for (; q + V::kTokens <= a.queries; q += V::kTokens) attend_some<V, W, V::kTokens>(a, q);
  for (; q < a.queries; ++q) attend_some<V, W, 1>(a, q);
}

template <class V>
void combine(const CombineArgs& a) {
  using F = typename V::F;
  float top = a.top[0];
  for (size_t s = 0; s < a.splits; ++s) top = a.top[s * a.scalar_stride] > top ? a.top[s * a.scalar_stride] : top;
  F total = V::set(0.0f);
  for (size_t s = 0; s < a.splits; ++s) {
    const F factor = arithmetic::exponential<V>(V::sub(V::set(a.top[s * a.scalar_stride]), V::set(top)));
    total = V::fma(V::set(a.total[s * a.scalar_stride]), factor, total);
  }
  for (size_t d = 0; d < a.channels; d += 16) {
    const size_t n = a.channels - d < 16 ? a.channels - d : 16;
    F sum = V::set(0.0f);
    for (size_t s = 0; s < a.splits; ++s) {
      const F factor = arithmetic::exponential<V>(V::sub(V::set(a.top[s * a.scalar_stride]), V::set(top)));
      sum = V::fma(V::load_some(a.weighted + s * a.weighted_stride + d, n), factor, sum);
    }
    sum = V::div(sum, total);
    V::store_some(a.y + d, a.rounded ? V::round_bf16(sum) : sum, n);
  }
}

}  // namespace assay::cpu
