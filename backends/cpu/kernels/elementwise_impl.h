// Norms, activations, rotation, residuals, conversions and the scan of a vocabulary segment.
#pragma once

#include "backends/cpu/kernels/attend_impl.h"
#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/kernels/loaders.h"
#include "backends/reference/arithmetic/elementary.h"

namespace assay::cpu {

// Calls body(i, n) for sixteen elements at a time, n < 16 at the end.
template <class Body>
[[gnu::always_inline]] inline void by_sixteen(size_t count, const Body& body) {
  for (size_t i = 0; i < count; i += 16) body(i, count - i < 16 ? count - i : size_t{16});
}

// The dot of arithmetic/dot.h where step(lanes, k, n) adds sixteen columns (n of them real) to the lanes.
template <class V, class Step>
[[gnu::always_inline]] inline float dot_of(size_t count, const Step& step) {
  typename V::F totals = V::set(0.0f);
  for (size_t block = 0; block < count; block += kDotBlock) {
    const size_t end = block + kDotBlock < count ? block + kDotBlock : count;
    typename V::F lanes = V::set(0.0f);
    for (size_t k = block; k < end; k += 16) lanes = step(lanes, k, end - k < 16 ? end - k : size_t{16});
    totals = V::add(totals, lanes);
  }
  return V::tree(totals);
}

template <class V>
void normalise(const NormArgs& a) {
  using F = typename V::F;
  const auto width = static_cast<float>(a.count);
  float mean = 0;
  if (a.centred) {
    mean = dot_of<V>(a.count, [&](F lanes, size_t k, size_t n) { return V::add(lanes, V::load_some(a.x + k, n)); }) /
           width;
  }
  // Lanes behind the end must stay zero, so the mean is taken off in y first.
  by_sixteen(a.count, [&](size_t i, size_t n) {
    const F x = V::load_some(a.x + i, n);
    V::store_some(a.y + i, a.centred ? V::sub(x, V::set(mean)) : x, n);
  });
  const float square = dot_of<V>(a.count,
                                 [&](F lanes, size_t k, size_t n) {
                                   const F y = V::load_some(a.y + k, n);
                                   return V::fma(y, y, lanes);
                                 }) /
                       width;
  const float scale = 1.0f / __builtin_sqrtf(square + a.epsilon);
  by_sixteen(a.count, [&](size_t i, size_t n) {
    const F v = V::mul(V::load_some(a.y + i, n), V::set(scale));
    const F gamma = V::load_some(a.gamma + i, n);
    const F y = a.beta == nullptr ? V::mul(v, gamma) : V::fma(v, gamma, V::load_some(a.beta + i, n));
    V::store_some(a.y + i, a.rounded ? V::round_bf16(y) : y, n);
  });
}

template <class V>
[[gnu::always_inline]] inline typename V::F activated(const ActivateArgs& a, typename V::F x, size_t i, size_t n) {
  switch (a.gate) {
    case Gate::kSwiglu:
      return V::mul(arithmetic::silu<V>(x), V::load_some(a.up + i, n));
    case Gate::kSquaredRelu:
      return arithmetic::squared_relu<V>(x);
    case Gate::kGeluErf:
      return arithmetic::gelu_erf<V>(x);
    default:
      return arithmetic::gelu_tanh<V>(x);
  }
}

template <class V>
void activate(const ActivateArgs& a) {
  by_sixteen(a.count, [&](size_t i, size_t n) {
    const typename V::F y = V::mul(activated<V>(a, V::load_some(a.first + i, n), i, n), V::set(a.factor));
    V::store_some(a.y + i, a.rounded ? V::round_bf16(y) : y, n);
  });
}

template <class V>
void add(const float* x, float* y, size_t count) {
  by_sixteen(count, [&](size_t i, size_t n) {
    V::store_some(y + i, V::add(V::load_some(y + i, n), V::load_some(x + i, n)), n);
  });
}

template <class V>
void add_scaled(const float* x, float factor, float* y, size_t count) {
  by_sixteen(count, [&](size_t i, size_t n) {
    V::store_some(y + i, V::add(V::load_some(y + i, n), V::mul(V::load_some(x + i, n), V::set(factor))), n);
  });
}

template <class V>
void round_floats(float* y, size_t count) {
  by_sixteen(count, [&](size_t i, size_t n) { V::store_some(y + i, V::round_bf16(V::load_some(y + i, n)), n); });
}

template <class V>
void rotate(float* head, const float* cosine, const float* sine, size_t half, bool interleaved) {
  using F = typename V::F;
  if (!interleaved) {
    by_sixteen(half, [&](size_t i, size_t n) {
      const F a = V::load_some(head + i, n);
      const F b = V::load_some(head + half + i, n);
      const F c = V::load_some(cosine + i, n);
      const F s = V::load_some(sine + i, n);
      V::store_some(head + i, V::fma(a, c, V::negate(V::mul(b, s))), n);
      V::store_some(head + half + i, V::fma(b, c, V::mul(a, s)), n);
    });
    return;
  }
  float even[16];
  float odd[16];
  by_sixteen(half, [&](size_t i, size_t n) {
    for (size_t l = 0; l < n; ++l) {
      even[l] = head[2 * (i + l)];
      odd[l] = head[2 * (i + l) + 1];
    }
    const F a = V::load_some(even, n);
    const F b = V::load_some(odd, n);
    const F c = V::load_some(cosine + i, n);
    const F s = V::load_some(sine + i, n);
    V::store_some(even, V::fma(a, c, V::negate(V::mul(b, s))), n);
    V::store_some(odd, V::fma(b, c, V::mul(a, s)), n);
    for (size_t l = 0; l < n; ++l) {
      head[2 * (i + l)] = even[l];
      head[2 * (i + l) + 1] = odd[l];
    }
  });
}

template <class V, class W>
void widen(const void* x, float* y, size_t count) {
  const auto* p = static_cast<const typename W::Stored*>(x);
  by_sixteen(count,
             [&](size_t i, size_t n) { V::store_some(y + i, n == 16 ? W::load(p + i) : W::load_some(p + i, n), n); });
}

template <class V>
void narrow_bf16(const float* x, uint16_t* y, size_t count) {
  float rounded[16];
  by_sixteen(count, [&](size_t i, size_t n) {
    V::store(rounded, V::round_bf16(V::load_some(x + i, n)));
    for (size_t l = 0; l < n; ++l) y[i + l] = static_cast<uint16_t>(__builtin_bit_cast(uint32_t, rounded[l]) >> 16);
  });
}

template <class V>
SegmentResult scan_segment(const float* logits, size_t count) {
  using F = typename V::F;
  float top = logits[0];
  size_t whole = count / 16 * 16;
  if (whole > 0) {
    F tops = V::load(logits);
    for (size_t i = 16; i < whole; i += 16) tops = V::greater(V::load(logits + i), tops);
    top = V::largest(tops);
  }
  for (size_t i = whole; i < count; ++i) top = logits[i] > top ? logits[i] : top;
  size_t argmax = 0;
  while (argmax + 1 < count && logits[argmax] != top) ++argmax;
  const float total = dot_of<V>(count, [&](F lanes, size_t k, size_t n) {
    float e[16];
    V::store(e, arithmetic::exponential<V>(V::sub(V::load_some(logits + k, n), V::set(top))));
    return V::add(lanes, V::load_some(e, n));
  });
  return {top, total, argmax};
}

}  // namespace assay::cpu
