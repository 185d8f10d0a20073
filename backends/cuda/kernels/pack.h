// Brings weights into the form in which the kernels read them.
#pragma once

#include "backends/cuda/kernels/types.h"

namespace assay::cuda {

// Writes the rows [first, first + rows) of a tiled matrix of `total_rows` from `source`: (rows, cols) bf16, row-major.
// `first` is a multiple of 16; padding rows and columns become zeros. Moves twice the bytes of the rows.
struct PackArgs {
  const void* source = nullptr;
  void* tiles = nullptr;  // of the whole matrix
  int first = 0;
  int rows = 0;
  int cols = 0;
};
void pack_tiles(const PackArgs& args, cudaStream_t stream);

}  // namespace assay::cuda
