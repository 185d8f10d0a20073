#include "backends/cpu/kernels/lanes_avx2.h"
#include "backends/cpu/kernels/table_impl.h"

namespace assay::cpu {

extern const Kernels kernels_avx2;
constexpr Kernels kTable = make_kernels<Avx2Lanes>("avx2");
const Kernels kernels_avx2 = kTable;

}  // namespace assay::cpu
