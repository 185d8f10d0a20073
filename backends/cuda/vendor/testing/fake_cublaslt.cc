// An object as assay_cublaslt.so, but of another build.
#include "backends/cuda/vendor/vendor_table.h"

namespace {

using namespace assay::cuda::vendor;

uint64_t loaded() { return 130100; }
constexpr GemmTable kTable{{kTableVersion + 1, "cuBLASLt", loaded}, nullptr, nullptr, nullptr, nullptr, nullptr};

}  // namespace

extern "C" __attribute__((visibility("default"))) const TableHead* assay_vendor_query() { return &kTable.head; }
