// Brings weights into the form in which the kernels read them.
#pragma once

#include "backends/cuda/kernels/types.h"

namespace assay::cuda {

// Writes the rows [first, first + rows) of a tiled matrix from `source`: (rows, cols) bf16, row-major. Padding is not
// written: the matrix is to be zero before. Reads the rows once and writes them once.
struct PackArgs {
  Matrix matrix = {};  // data: where to
  const void* source = nullptr;
  int first = 0;
  int rows = 0;
};
void pack_tiles(const PackArgs& args, cudaStream_t stream);

}  // namespace assay::cuda
