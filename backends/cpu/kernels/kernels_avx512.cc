#include "backends/cpu/kernels/lanes_avx512.h"
#include "backends/cpu/kernels/table_impl.h"

namespace assay::cpu {

extern const Kernels kernels_avx512;
constexpr Kernels kTable = make_kernels<Avx512Lanes>("avx512");
const Kernels kernels_avx512 = kTable;

}  // namespace assay::cpu
