// What every kernel of kernels.h promises and costs: its determinism level, and the bytes and flops that it cannot do
// without. Pure functions.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "backends/cpu/kernels/kernels.h"

namespace assay::cpu {

// What the costs depend on. A kernel looks at the members that its row of the table names.
struct KernelShape {
  size_t rows = 1;    // of weights (matmul); queries that share keys and values (attend); splits (combine)
  size_t cols = 1;    // elements of a vector; channels of a head
  size_t tokens = 1;  // vectors of inputs (matmul, pack); positions (attend)
  Number number = Number::kFloat32;  // stored form of weights, keys, values
};

// Bytes: everything read and written once, however often a cache has to be filled. Flops: a multiply-add counts two,
// a transcendental one.
struct Work {
  double bytes = 0;
  double flops = 0;
};

struct KernelInfo {
  std::string_view name;  // of the member of Kernels
  size_t forms = 1;       // entries of that member: 1, or kNumbers
  // Holds L1 to L<level> (docs/determinism.md): 1 the same inputs and any cut of the output among threads, 2 whatever
  // other vectors come along and wherever a vector lies, 3 any cut of the vectors into calls.
  int level = 1;
  Work (*work)(const KernelShape& shape) = nullptr;
};

// One entry for every member of Kernels that computes.
std::span<const KernelInfo> kernel_table();
const KernelInfo* find_kernel(std::string_view name);  // null: no such kernel

}  // namespace assay::cpu
