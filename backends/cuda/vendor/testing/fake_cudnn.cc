// An object as assay_cudnn.so, around a cuDNN that is too old.
#include "backends/cuda/vendor/vendor_table.h"

namespace {

using namespace assay::cuda::vendor;

uint64_t loaded() { return 91301; }
constexpr AttentionTable kTable{{kTableVersion, "cuDNN", loaded}, nullptr, nullptr, nullptr, nullptr, nullptr};

}  // namespace

extern "C" __attribute__((visibility("default"))) const TableHead* assay_vendor_query() { return &kTable.head; }
