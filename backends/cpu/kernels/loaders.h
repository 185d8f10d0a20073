// Reading sixteen stored numbers as floats, one loader a stored form. Templates over the lanes of an instruction set,
// so that no symbol is shared between files built with different flags.
#pragma once

#include <cstddef>
#include <cstdint>

namespace assay::cpu {

template <class V>
struct LoadFloat32 {
  using Stored = float;
  [[gnu::always_inline]] static inline typename V::F load(const Stored* p) { return V::load(p); }
  [[gnu::always_inline]] static inline typename V::F load_some(const Stored* p, size_t n) { return V::load_some(p, n); }
};

// The tail of a row: copied, so that nothing behind it is touched; the missing elements are zero.
template <class V>
[[gnu::always_inline]] inline void copy_some(const uint16_t* p, size_t n, uint16_t (&whole)[16]) {
  for (size_t i = 0; i < 16; ++i) whole[i] = i < n ? p[i] : uint16_t{0};
}

template <class V>
struct LoadBfloat16 {
  using Stored = uint16_t;
  [[gnu::always_inline]] static inline typename V::F load(const Stored* p) { return V::load_bf16(p); }
  [[gnu::always_inline]] static inline typename V::F load_some(const Stored* p, size_t n) {
    uint16_t whole[16];
    copy_some<V>(p, n, whole);
    return V::load_bf16(whole);
  }
};

template <class V>
struct LoadFloat16 {
  using Stored = uint16_t;
  [[gnu::always_inline]] static inline typename V::F load(const Stored* p) { return V::load_fp16(p); }
  [[gnu::always_inline]] static inline typename V::F load_some(const Stored* p, size_t n) {
    uint16_t whole[16];
    copy_some<V>(p, n, whole);
    return V::load_fp16(whole);
  }
};

}  // namespace assay::cpu
