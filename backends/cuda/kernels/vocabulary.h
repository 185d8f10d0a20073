// What is said about rows of logits (backends/reference/arithmetic/vocabulary.h): maxima, sums, argmax, rank.
#pragma once

#include "backends/cuda/kernels/types.h"

namespace assay::cuda {

// Of one row. logprob(i) = (logit_i - top) - log(total); the logarithm is the host's.
struct RowFacts {
  float top;       // largest logit
  float total;     // sum of exp(logit - top)
  float target;    // logit of the target; undefined without one
  int32_t argmax;  // the lowest id among equals
  int32_t rank;    // of the target, 0 = the largest; undefined without one
};

struct ScanArgs {
  const float* logits = nullptr;     // (rows, vocab)
  const int32_t* targets = nullptr;  // (rows), -1: none
  RowFacts* facts = nullptr;         // (rows)
  float* segments = nullptr;         // scratch: segment_floats() of them
  int rows = 0;
  int vocab = 0;
};
void scan_rows(const ScanArgs& args, cudaStream_t stream);

// Floats of scratch: (rows, segments, 4).
size_t segment_floats(int rows, int vocab);

}  // namespace assay::cuda
