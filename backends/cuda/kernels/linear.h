// Linear layers: y[t] = weight x[t] (+ bias), one dot a (row, token).
//
// The dot of fp32 arithmetic is backends/reference/arithmetic/dot.h. The dot of bf16 arithmetic (tensor cores): K is
// padded with zeros to a multiple of 16 and cut into segments of 256; within a segment a chain of
// mma.sync.m16n8k16 (bf16, fp32 accumulate) over ascending k starts from +0; the segments are added ascending in fp32
// to a total that starts from +0. Weights are the A operand (16 rows), tokens the B operand (8 columns).
#pragma once

#include "backends/cuda/kernels/types.h"

namespace assay::cuda {

struct LinearArgs {
  Matrix weight = {};  // of expert 0 where `groups` is set: the others follow; tiled exactly where x is bf16
  Inputs x = {};       // (tokens / x_divisor) of (cols)
  int x_divisor = 1;
  float* y = nullptr;  // (tokens) of (rows), `y_stride` apart
  int y_stride = 0;
  int tokens = 0;                      // or slots
  const float* bias = nullptr;         // (rows), one after the other for the experts; or null
  const float* bias_factor = nullptr;  // (tokens): the bias is multiplied by it first; or null
  bool rounded = false;                // y is rounded to bf16 (and kept as fp32)
  bool onto = false;                   // y = y + result, the residual
  const Groups* groups = nullptr;      // host memory; null: all tokens go through the one matrix
};

// 2 * rows * cols * tokens flops. Moves the weights once per kTileTokens tokens.
void linear(const LinearArgs& args, cudaStream_t stream);

}  // namespace assay::cuda
