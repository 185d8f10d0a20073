#include "backends/cpu/kernels/isas.h"

namespace assay::cpu {

extern const Kernels kernels_scalar;

std::span<const Isa> isas() {
  static const Isa kIsas[] = {{"scalar", &kernels_scalar, [] { return true; }, "nothing"}};
  return kIsas;
}

}  // namespace assay::cpu
