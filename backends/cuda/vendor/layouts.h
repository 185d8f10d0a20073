// Brings what the own kernels keep into the layouts that the vendor's libraries read, and back.
#pragma once

#include "backends/cuda/kernels/attention.h"
#include "backends/cuda/kernels/types.h"

namespace assay::cuda::vendor {

// A tiled matrix as (rows, round_up(cols, 16)) bf16, row-major; the padding is zero. Moves the matrix twice.
void untile(const Matrix& matrix, void* to, cudaStream_t stream);

// y[t] += bias, then rounded to bf16 (and kept as fp32) where `rounded`. Moves y twice.
struct FinishArgs {
  float* y = nullptr;  // (tokens, rows), `stride` apart
  int tokens = 0;
  int rows = 0;
  int stride = 0;
  const float* bias = nullptr;  // (rows) or null
  bool rounded = false;
};
void finish_rows(const FinishArgs& args, cudaStream_t stream);

// The tokens [first, first + count) of a pass: neighbours of one sequence, at positions start, start + 1, ...
struct RunPlace {
  int first = 0;
  int count = 0;
  int start = 0;
};

// Dense bf16 buffers of one run, zero where there is no token.
struct DenseHeads {
  void* q = nullptr;  // (queries, heads, channels): the run's
  void* k = nullptr;  // (groups, keys, channels): positions 0 .. keys - 1
  void* v = nullptr;
  int queries = 0;
  int keys = 0;
};

// Fills q (where there is one), k and v from args.queries and the paged cache.
void gather_heads(const AttendArgs& args, const RunPlace& run, const DenseHeads& dense, cudaStream_t stream);

// The first run.count rows of `from` (queries, heads, channels) bf16 to the run's rows of args.y.
void scatter_rows(const AttendArgs& args, const RunPlace& run, const void* from, cudaStream_t stream);

}  // namespace assay::cuda::vendor
