// Sixteen lanes in plain C++ (see arithmetic/elementary.h for what an Ops supplies).
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "backends/reference/arithmetic/elementary.h"
#include "backends/reference/arithmetic/formats.h"

namespace assay::cpu {

struct ScalarLanes {
  using S = arithmetic::Single;
  struct F {
    float v[16];
  };
  struct I {
    uint32_t v[16];
  };
  struct M {
    bool v[16];
  };
  static constexpr int kRowsAlone = 4;  // register tile: rows x tokens
  static constexpr int kRows = 2;
  static constexpr int kTokens = 2;

  template <class Out, class Function>
  static Out each(Function function) {
    Out out;
    for (int i = 0; i < 16; ++i) out.v[i] = function(i);
    return out;
  }
  static F set(float v) {
    return each<F>([&](int) { return v; });
  }
  static F add(F a, F b) {
    return each<F>([&](int i) { return a.v[i] + b.v[i]; });
  }
  static F sub(F a, F b) {
    return each<F>([&](int i) { return a.v[i] - b.v[i]; });
  }
  static F mul(F a, F b) {
    return each<F>([&](int i) { return a.v[i] * b.v[i]; });
  }
  static F div(F a, F b) {
    return each<F>([&](int i) { return a.v[i] / b.v[i]; });
  }
  static F fma(F a, F b, F c) {
    return each<F>([&](int i) { return std::fma(a.v[i], b.v[i], c.v[i]); });
  }
  static F lesser(F a, F b) {
    return each<F>([&](int i) { return S::lesser(a.v[i], b.v[i]); });
  }
  static F greater(F a, F b) {
    return each<F>([&](int i) { return S::greater(a.v[i], b.v[i]); });
  }
  static F absolute(F a) {
    return each<F>([&](int i) { return S::absolute(a.v[i]); });
  }
  static F negate(F a) {
    return each<F>([&](int i) { return S::negate(a.v[i]); });
  }
  static M below(F a, F b) {
    return each<M>([&](int i) { return a.v[i] < b.v[i]; });
  }
  static F pick(M m, F yes, F no) {
    return each<F>([&](int i) { return m.v[i] ? yes.v[i] : no.v[i]; });
  }
  static I bits(F a) {
    return each<I>([&](int i) { return S::bits(a.v[i]); });
  }
  static F floats(I a) {
    return each<F>([&](int i) { return S::floats(a.v[i]); });
  }
  static I iset(uint32_t v) {
    return each<I>([&](int) { return v; });
  }
  static I iadd(I a, I b) {
    return each<I>([&](int i) { return a.v[i] + b.v[i]; });
  }
  static I isub(I a, I b) {
    return each<I>([&](int i) { return a.v[i] - b.v[i]; });
  }
  static I half(I a) {
    return each<I>([&](int i) { return S::half(a.v[i]); });
  }
  static I to_exponent(I a) {
    return each<I>([&](int i) { return a.v[i] << 23; });
  }

  static F load(const float* p) {
    return each<F>([&](int i) { return p[i]; });
  }
  static F load_some(const float* p, size_t n) {
    return each<F>([&](int i) { return static_cast<size_t>(i) < n ? p[i] : 0.0f; });
  }
  static F load_bf16(const uint16_t* p) {
    return each<F>([&](int i) { return arithmetic::from_bf16(p[i]); });
  }
  static F load_fp16(const uint16_t* p) {
    return each<F>([&](int i) { return arithmetic::from_fp16(p[i]); });
  }
  static void store(float* p, F a) {
    for (int i = 0; i < 16; ++i) p[i] = a.v[i];
  }
  static void store_some(float* p, F a, size_t n) {
    for (size_t i = 0; i < n; ++i) p[i] = a.v[i];
  }
  static F round_bf16(F a) {
    return each<F>([&](int i) { return arithmetic::round_bf16(a.v[i]); });
  }
  static float tree(F a) {
    for (int width = 8; width > 0; width /= 2) {
      for (int i = 0; i < width; ++i) a.v[i] = a.v[i] + a.v[i + width];
    }
    return a.v[0];
  }
  // y[i] = tree(sixteen floats at 16 * i) for sixteen of them.
  static void trees(const float* lanes, float* y) {
    for (int i = 0; i < 16; ++i) y[i] = tree(load(lanes + 16 * i));
  }
  static float largest(F a) {
    float top = a.v[0];
    for (int i = 1; i < 16; ++i) top = S::greater(a.v[i], top);
    return top;
  }
  static void prefetch(const void*) {}
};

}  // namespace assay::cpu
