// End of a decode step: final norm, output layer, greedy choice, and the input of the next step.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cuda/fast/launch.h"
#include "backends/cuda/fast/shapes.h"

namespace assay::cuda::fast {

struct HeadArgs {
  const float* x = nullptr;      // (tokens, kHidden) fp32
  const float* gamma = nullptr;  // (kHidden)
  float eps = 0;
  const void* weight = nullptr;  // (vocabulary, kHidden) bf16 tiles
  int vocabulary = 0;            // multiple of 16
  int tokens = 0;
  void* logits = nullptr;  // (tokens, vocabulary) bf16
  constexpr size_t bytes() const { return static_cast<size_t>(vocabulary) * kHidden * 2; }
};
cudaError_t head(const HeadArgs& args, const Launch& how);

constexpr int kVocabularySegment = 4096;

// What the segments of the vocabulary are put together from.
struct SegmentResult {
  unsigned long long best;  // (ordered logit, ~id)
  float top;                // largest logit
  float sum;                // of exp(logit - top)
};

// Argmax (ties to the lower id) and its logprob; then ids[t] and positions[t] + 1 and the next embedding.
struct PickArgs {
  const void* logits = nullptr;      // (tokens, vocabulary) bf16
  const void* embeddings = nullptr;  // (vocabulary, kHidden) bf16, row-major
  int vocabulary = 0;                // multiple of kVocabularySegment
  int tokens = 0;
  SegmentResult* segments = nullptr;  // (tokens, vocabulary / kVocabularySegment)
  uint32_t* tickets = nullptr;        // (tokens), 0 between steps
  int32_t* ids = nullptr;             // (tokens)
  int32_t* positions = nullptr;       // (tokens)
  float* logprobs = nullptr;          // (tokens)
  float* x = nullptr;                 // (tokens, kHidden): input of the next step
};
cudaError_t pick(const PickArgs& args, const Launch& how);

}  // namespace assay::cuda::fast
