// One split of attention, and putting splits together, in the order of arithmetic/attend.h.
#pragma once

#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/kernels/loaders.h"
#include "backends/cpu/kernels/matmul_impl.h"
#include "backends/reference/arithmetic/elementary.h"

namespace assay::cpu {

// out[i] = dot(q, keys[i]) for N keys.
template <class V, class W, int N>
[[gnu::always_inline]] inline void key_dots(const float* q, const void* const* keys, size_t channels, float* out) {
  using F = typename V::F;
  using Stored = typename W::Stored;
  F totals[N];
#pragma GCC unroll 8
  for (int i = 0; i < N; ++i) totals[i] = V::set(0.0f);
  for (size_t block = 0; block < channels; block += kDotBlock) {
    const size_t end = block + kDotBlock < channels ? block + kDotBlock : channels;
    F lanes[N];
#pragma GCC unroll 8
    for (int i = 0; i < N; ++i) lanes[i] = V::set(0.0f);
    size_t k = block;
    for (; k + 16 <= end; k += 16) {
      const F in = V::load(q + k);
#pragma GCC unroll 8
      for (int i = 0; i < N; ++i) lanes[i] = V::fma(in, W::load(static_cast<const Stored*>(keys[i]) + k), lanes[i]);
    }
    if (k < end) {
      const F in = V::load_some(q + k, end - k);
#pragma GCC unroll 8
      for (int i = 0; i < N; ++i) {
        lanes[i] = V::fma(in, W::load_some(static_cast<const Stored*>(keys[i]) + k, end - k), lanes[i]);
      }
    }
#pragma GCC unroll 8
    for (int i = 0; i < N; ++i) totals[i] = V::add(totals[i], lanes[i]);
  }
#pragma GCC unroll 8
  for (int i = 0; i < N; ++i) out[i] = V::tree(totals[i]);
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

// values weighted by e, ascending in position, for `chunks` times sixteen channels from d on.
template <class V, class W, int N>
[[gnu::always_inline]] inline void weigh(const float* e, const void* const* values, size_t count, size_t d,
                                         float* out) {
  using F = typename V::F;
  using Stored = typename W::Stored;
  F sums[N];
#pragma GCC unroll 8
  for (int i = 0; i < N; ++i) sums[i] = V::set(0.0f);
  for (size_t j = 0; j < count; ++j) {
    const F weight = V::set(e[j]);
    const Stored* v = static_cast<const Stored*>(values[j]) + d;
#pragma GCC unroll 8
    for (int i = 0; i < N; ++i) sums[i] = V::fma(weight, W::load(v + 16 * i), sums[i]);
  }
#pragma GCC unroll 8
  for (int i = 0; i < N; ++i) V::store(out + d + 16 * static_cast<size_t>(i), sums[i]);
}

template <class V, class W>
void attend(const AttendArgs& a) {
  using F = typename V::F;
  using Stored = typename W::Stored;
  float e[kDotBlock];
  for (size_t h = 0; h < a.heads; ++h) {
    const float* q = a.query + h * a.channels;
    size_t j = 0;
    for (; j + 4 <= a.count; j += 4) key_dots<V, W, 4>(q, a.keys + j, a.channels, e + j);
    for (; j < a.count; ++j) key_dots<V, W, 1>(q, a.keys + j, a.channels, e + j);
    for (j = 0; j < a.count; ++j) e[j] = e[j] * a.scale;
    float top = e[0];
    for (j = 1; j < a.count; ++j) top = e[j] > top ? e[j] : top;
    const F shift = V::set(top);
    for (j = 0; j < a.count; j += 16) {
      const size_t n = a.count - j < 16 ? a.count - j : 16;
      V::store_some(e + j, arithmetic::exponential<V>(V::sub(V::load_some(e + j, n), shift)), n);
    }
    a.top[h] = top;
    a.total[h] = block_sum<V>(e, a.count);
    float* out = a.weighted + h * a.channels;
    size_t d = 0;
    for (; d + 64 <= a.channels; d += 64) weigh<V, W, 4>(e, a.values, a.count, d, out);
    for (; d + 16 <= a.channels; d += 16) weigh<V, W, 1>(e, a.values, a.count, d, out);
    if (d < a.channels) {
      const size_t n = a.channels - d;
      F sum = V::set(0.0f);
      for (j = 0; j < a.count; ++j) {
        sum = V::fma(V::set(e[j]), W::load_some(static_cast<const Stored*>(a.values[j]) + d, n), sum);
      }
      V::store_some(out + d, sum, n);
    }
  }
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
