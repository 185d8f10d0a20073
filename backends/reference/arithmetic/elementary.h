// exp, sigmoid, erf and the activations, written once for one number (Single) and for vectors: the same operations in
// the same order, so that every instruction set gives the same bits. Errors are measured in elementary_test.cc.
//
// `Ops` supplies F (one or several floats), I (as many uint32), M (as many conditions) and: set, add, sub, mul, div,
// fma(a,b,c) = a*b+c rounded once, lesser(a,b) = a < b ? a : b, greater(a,b) = a > b ? a : b (so a NaN in b survives),
// absolute, negate, below(a,b) -> M, pick(M, yes, no), bits(F) -> I, floats(I) -> F, iset, iadd, isub, half(I)
// (arithmetic shift right by one) and to_exponent(I) (shift left by 23).
// The templates are constexpr so that device code may call them too.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace assay::arithmetic {

// One float.
struct Single {
  using F = float;
  using I = uint32_t;
  using M = bool;
  static constexpr F set(float v) { return v; }
  static constexpr F add(F a, F b) { return a + b; }
  static constexpr F sub(F a, F b) { return a - b; }
  static constexpr F mul(F a, F b) { return a * b; }
  static constexpr F div(F a, F b) { return a / b; }
  static F fma(F a, F b, F c) { return std::fma(a, b, c); }
  static constexpr F lesser(F a, F b) { return a < b ? a : b; }
  static constexpr F greater(F a, F b) { return a > b ? a : b; }
  static constexpr F absolute(F a) { return std::bit_cast<float>(std::bit_cast<uint32_t>(a) & 0x7fffffffu); }
  static constexpr F negate(F a) { return std::bit_cast<float>(std::bit_cast<uint32_t>(a) ^ 0x80000000u); }
  static constexpr M below(F a, F b) { return a < b; }
  static constexpr F pick(M m, F yes, F no) { return m ? yes : no; }
  static constexpr I bits(F a) { return std::bit_cast<uint32_t>(a); }
  static constexpr F floats(I a) { return std::bit_cast<float>(a); }
  static constexpr I iset(uint32_t v) { return v; }
  static constexpr I iadd(I a, I b) { return a + b; }
  static constexpr I isub(I a, I b) { return a - b; }
  static constexpr I half(I a) { return (a >> 1) | (a & 0x80000000u); }
  static constexpr I to_exponent(I a) { return a << 23; }
};

// e^x: x = n ln2 + r, e^r by its Taylor series to r^7, scaled by 2^n in two steps (right into the subnormals).
template <class O>
constexpr typename O::F exponential(typename O::F x) {
  using F = typename O::F;
  using I = typename O::I;
  x = O::lesser(O::set(89.0f), O::greater(O::set(-104.0f), x));
  const F magic = O::set(12582912.0f);  // 1.5 * 2^23: adding it rounds to an integer, kept in the low bits
  const F shifted = O::fma(x, O::set(1.44269504f), magic);
  const F n = O::sub(shifted, magic);
  F r = O::fma(n, O::set(-0x1.62e4p-1f), x);   // ln2, high part: n * high is exact
  r = O::fma(n, O::set(-0x1.7f7d1cp-20f), r);  // ln2, low part
  F p = O::set(1.0f / 5040);
  p = O::fma(p, r, O::set(1.0f / 720));
  p = O::fma(p, r, O::set(1.0f / 120));
  p = O::fma(p, r, O::set(1.0f / 24));
  p = O::fma(p, r, O::set(1.0f / 6));
  p = O::fma(p, r, O::set(0.5f));
  p = O::fma(p, r, O::set(1.0f));
  p = O::fma(p, r, O::set(1.0f));
  const I exponent = O::isub(O::bits(shifted), O::bits(magic));
  const I first = O::half(exponent);
  const I second = O::isub(exponent, first);
  p = O::mul(p, O::floats(O::to_exponent(O::iadd(first, O::iset(127)))));
  return O::mul(p, O::floats(O::to_exponent(O::iadd(second, O::iset(127)))));
}

// 1 / (1 + e^-x), by e^-|x| so that neither end overflows.
template <class O>
constexpr typename O::F sigmoid(typename O::F x) {
  using F = typename O::F;
  const F e = exponential<O>(O::negate(O::absolute(x)));
  const F one = O::set(1.0f);
  return O::div(O::pick(O::below(x, O::set(0.0f)), e, one), O::add(one, e));
}

// erf: Taylor series below 1; above, 1 - exp(q(|x| - 2.5)) where q interpolates log(erfc) on [1, 4] at Chebyshev nodes.
template <class O>
constexpr typename O::F error_function(typename O::F x) {
  using F = typename O::F;
  const F s = O::mul(x, x);
  F near = O::set(1.48076219e-08f);  // 2/sqrt(pi) * (-1)^n / (n! (2n+1)), n = 10 .. 0
  near = O::fma(near, s, O::set(-1.63658447e-07f));
  near = O::fma(near, s, O::set(1.64621144e-06f));
  near = O::fma(near, s, O::set(-1.49256504e-05f));
  near = O::fma(near, s, O::set(1.20553330e-04f));
  near = O::fma(near, s, O::set(-8.54832702e-04f));
  near = O::fma(near, s, O::set(5.22397763e-03f));
  near = O::fma(near, s, O::set(-2.68661706e-02f));
  near = O::fma(near, s, O::set(1.12837917e-01f));
  near = O::fma(near, s, O::set(-3.76126389e-01f));
  near = O::fma(near, s, O::set(1.28379167e-01f));  // 2/sqrt(pi) - 1: the 1 is added last, as x
  near = O::fma(near, x, x);
  const F t = O::absolute(x);
  const F u = O::sub(O::lesser(O::set(4.0f), t), O::set(2.5f));
  F far = O::set(1.63715142e-06f);
  far = O::fma(far, u, O::set(-1.33150144e-05f));
  far = O::fma(far, u, O::set(7.72913761e-05f));
  far = O::fma(far, u, O::set(-4.20122524e-04f));
  far = O::fma(far, u, O::set(2.16530355e-03f));
  far = O::fma(far, u, O::set(-1.08585416e-02f));
  far = O::fma(far, u, O::set(-9.43893704e-01f));
  far = O::fma(far, u, O::set(-5.35268067f));
  far = O::fma(far, u, O::set(-7.80681527f));
  far = O::sub(O::set(1.0f), exponential<O>(far));
  far = O::pick(O::below(x, O::set(0.0f)), O::negate(far), far);
  return O::pick(O::below(t, O::set(1.0f)), near, far);
}

template <class O>
constexpr typename O::F silu(typename O::F x) {
  return O::mul(x, sigmoid<O>(x));
}

template <class O>
constexpr typename O::F squared_relu(typename O::F x) {
  const typename O::F positive = O::greater(O::set(0.0f), x);
  return O::mul(positive, positive);
}

// x/2 (1 + erf(x / sqrt 2))
template <class O>
constexpr typename O::F gelu_erf(typename O::F x) {
  const typename O::F half = O::mul(O::set(0.5f), x);
  return O::fma(half, error_function<O>(O::mul(x, O::set(0.707106781f))), half);
}

// x/2 (1 + tanh(u)), u = sqrt(2/pi) (x + 0.044715 x^3); (1 + tanh u) / 2 = sigmoid(2u).
template <class O>
constexpr typename O::F gelu_tanh(typename O::F x) {
  using F = typename O::F;
  const F inner = O::fma(O::mul(O::set(0.044715f), x), x, O::set(1.0f));
  return O::mul(x, sigmoid<O>(O::mul(O::mul(O::set(1.59576912f), x), inner)));
}

}  // namespace assay::arithmetic
