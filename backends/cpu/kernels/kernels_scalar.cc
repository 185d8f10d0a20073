#include "backends/cpu/kernels/lanes_scalar.h"
#include "backends/cpu/kernels/table_impl.h"

namespace assay::cpu {

extern const Kernels kernels_scalar;
constexpr Kernels kTable = make_kernels<ScalarLanes>("scalar");
const Kernels kernels_scalar = kTable;

}  // namespace assay::cpu
