// Both ends of a decode step: embeddings; final norm and output layer; what is said about the logits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cuda/fast/launch.h"
#include "backends/cuda/fast/shapes.h"
#include "backends/cuda/kernels/vocabulary.h"

namespace assay::cuda::fast {

// x[t] = the row of ids[t].
struct EmbedRowsArgs {
  const void* embeddings = nullptr;  // (vocabulary, kHidden) bf16 tiles
  const int32_t* ids = nullptr;      // (tokens)
  int tokens = 0;
  float* x = nullptr;  // (tokens, kHidden)
};
cudaError_t embed_rows(const EmbedRowsArgs& args, const Launch& how);

struct HeadArgs {
  const float* x = nullptr;      // (tokens, kHidden) fp32
  const float* gamma = nullptr;  // (kHidden)
  float eps = 0;
  const void* weight = nullptr;  // (vocabulary, kHidden) bf16 tiles
  int vocabulary = 0;            // multiple of 16
  int tokens = 0;
  float* logits = nullptr;  // (tokens, vocabulary) rounded to bf16
  constexpr size_t bytes() const { return static_cast<size_t>(vocabulary) * kHidden * 2; }
};
cudaError_t head(const HeadArgs& args, const Launch& how);

constexpr int kVocabularySegment = 4096;
constexpr int vocabulary_segments(int vocabulary) { return (vocabulary + kVocabularySegment - 1) / kVocabularySegment; }

// What the segments of a row are put together from.
struct SegmentResult {
  float top;       // largest logit
  float total;     // of exp(logit - top)
  int32_t argmax;  // its id
  int32_t rank;    // ids of the segment that are before the target
};

// The facts of each row, as scan_rows (kernels/vocabulary.h) has them. `advance`: ids[t] = argmax, positions[t] += 1.
struct PickArgs {
  const float* logits = nullptr;  // (tokens, vocabulary)
  int vocabulary = 0;
  int tokens = 0;
  const int32_t* targets = nullptr;   // (tokens), -1: none; or null
  SegmentResult* segments = nullptr;  // (tokens, vocabulary_segments())
  uint32_t* tickets = nullptr;        // (tokens), 0 between steps
  RowFacts* facts = nullptr;          // (tokens)
  bool advance = false;
  int32_t* ids = nullptr;        // (tokens)
  int32_t* positions = nullptr;  // (tokens)
};
cudaError_t pick(const PickArgs& args, const Launch& how);

}  // namespace assay::cuda::fast
