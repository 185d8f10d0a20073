#include <cpuid.h>

#include "backends/cpu/kernels/isas.h"

namespace assay::cpu {

extern const Kernels kernels_scalar;
extern const Kernels kernels_avx2;
extern const Kernels kernels_avx512;

namespace {

// The built-in that answers for the others knows this one in new compilers alone.
bool has_f16c() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}

bool has_avx2() { return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0 && has_f16c(); }

bool has_avx512() {
  return has_avx2() && __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
         __builtin_cpu_supports("avx512dq") != 0 && __builtin_cpu_supports("avx512vl") != 0;
}

}  // namespace

std::span<const Isa> isas() {
  static const Isa kIsas[] = {{"avx512", &kernels_avx512, has_avx512, "AVX-512 F, BW, DQ and VL"},
                              {"avx2", &kernels_avx2, has_avx2, "AVX2, FMA and F16C"},
                              {"scalar", &kernels_scalar, [] { return true; }, "nothing"}};
  return kIsas;
}

}  // namespace assay::cpu
