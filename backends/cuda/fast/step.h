// One decode step of up to 8 sequences: five kernels a layer, two at the end, no host synchronisation.
#pragma once

#include <vector>

#include "backends/cuda/fast/attention.h"
#include "backends/cuda/fast/experts.h"
#include "backends/cuda/fast/head.h"
#include "backends/cuda/fast/launch.h"
#include "backends/cuda/fast/linear.h"

namespace assay::cuda::fast {

struct LayerWeights {
  const float* attention_gamma = nullptr;  // (kHidden)
  const void* qkv = nullptr;               // (groups * (heads_per_group + 2) * kHeadSize, kHidden) bf16 tiles
  const void* projection = nullptr;        // (kHidden, heads * kHeadSize) bf16 tiles; heads * kHeadSize = kHidden
  const float* mlp_gamma = nullptr;        // (kHidden)
  ExpertWeights experts;
};

struct ModelWeights {
  std::vector<LayerWeights> layers;
  int groups = 0;
  int heads_per_group = 0;
  float eps = 0;
  bool rounded_router = true;
  const float* final_gamma = nullptr;
  const void* output = nullptr;      // (vocabulary, kHidden) bf16 tiles
  const void* embeddings = nullptr;  // (vocabulary, kHidden) bf16, row-major
  int vocabulary = 0;
  const float2* rotary = nullptr;  // (positions, kHeadSize / 2)
};

// Device memory that a step works in.
struct StepBuffers {
  float* x = nullptr;              // (tokens, kHidden): embeddings of the ids when a step starts
  float* qkv = nullptr;            // (tokens, rows of qkv)
  void* attended = nullptr;        // (tokens, kHidden) bf16
  SplitResult* splits = nullptr;   // (tokens, heads, most splits)
  float* router_logits = nullptr;  // (tokens, experts)
  void* inner = nullptr;           // (tokens, topk, width) bf16
  void* shared_inner = nullptr;    // (tokens, shared width) bf16
  void* logits = nullptr;          // (tokens, vocabulary) bf16
  SegmentResult* segments = nullptr;
  uint32_t* counters = nullptr;  // zeros: (1) router, (tokens) pick, (tokens, groups) attention
  int32_t* ids = nullptr;        // (tokens)
  int32_t* positions = nullptr;  // (tokens)
  float* logprobs = nullptr;     // (tokens)
};

struct StepArgs {
  const ModelWeights* model = nullptr;
  StepBuffers buffers;
  void* keys = nullptr;  // (layers, blocks, groups, block_size, kHeadSize) bf16
  void* values = nullptr;
  size_t layer_bytes = 0;          // of keys, of values
  const int32_t* table = nullptr;  // (tokens, table_stride)
  int table_stride = 0;
  int block_size = 0;
  int tokens = 0;
  int splits = 0;  // at least position / kSplit + 1 of every token
};

// Appends the step to how.stream (also while it is being captured).
cudaError_t decode_step(const StepArgs& args, const Launch& how);

}  // namespace assay::cuda::fast
