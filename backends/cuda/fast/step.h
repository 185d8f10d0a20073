// One decode step of up to 8 sequences of a bf16 mixture of experts of hidden size 2048: ids in, logits and what is
// said about them out, all on the device. Five kernels a layer, three more a step, no host synchronisation; may be
// captured into a graph. persistent.h does the same in one kernel.
//
// Everything but attention gives the bits of backends/cuda/kernels; attention is attention_math.cuh's. Determinism
// level: L3.
#pragma once

#include <cstddef>
#include <cstdint>
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
  ExpertWeights experts;                   // a layer without experts: experts = 0, its MLP as the shared expert
};

struct ModelWeights {
  std::vector<LayerWeights> layers;
  int groups = 0;
  int heads_per_group = 0;  // <= 8
  float eps = 0;
  bool rounded_router = true;
  const float* final_gamma = nullptr;
  const void* output = nullptr;      // (vocabulary, kHidden) bf16 tiles
  const void* embeddings = nullptr;  // (vocabulary, kHidden) bf16 tiles
  int vocabulary = 0;                // multiple of 16
  const float* rotary = nullptr;     // (positions, 2, kHeadSize / 2): cosines, then sines
};

// The largest step that the buffers are for.
struct StepShape {
  int groups = 0;
  int heads_per_group = 0;
  int experts = 0;
  int inner = 0;         // most of topk * width
  int shared_width = 0;  // most
  int widest = 0;        // most of topk * width + shared_width
  int layers = 0;
  int vocabulary = 0;
  int tokens = 0;
  int splits = 0;  // of attention: positions / kSplit, rounded up
};

// Device memory that a step works in; step_buffers() lays it out.
struct StepBuffers {
  float* x = nullptr;              // (tokens, kHidden) residual
  float* qkv = nullptr;            // (tokens, rows of qkv)
  void* attended = nullptr;        // (tokens, kHidden) bf16
  SplitResult* splits = nullptr;   // (tokens, heads, splits)
  float* router_logits = nullptr;  // (tokens, experts)
  void* inner = nullptr;           // (tokens, topk, width) bf16
  void* shared_inner = nullptr;    // (tokens, shared width) bf16
  SegmentResult* segments = nullptr;
  uint32_t* counters = nullptr;       // (1) router, (tokens) rows, (tokens, groups) attention; zeros between steps
  uint32_t* grid_counters = nullptr;  // of the persistent kernel: kPersistentCounters
  uint64_t* tagged_splits = nullptr;  // of the persistent kernel: (tokens, heads, splits, kSplitNumbers)
  uint32_t* board = nullptr;          // of the persistent kernel: (2, layers, tokens, board_size())
  StepShape shape;                    // that they are for
};

StepShape step_shape(const ModelWeights& model, int tokens, int positions);
size_t step_memory(const StepShape& shape);  // bytes
// memory: step_memory() bytes on the device at a multiple of 256, zeros before the first step. A step that was aborted
// leaves it undefined: zero it again. One step at a time may use it.
StepBuffers step_buffers(const StepShape& shape, void* memory);

struct StepArgs {
  const ModelWeights* model = nullptr;  // host memory, read before the call returns
  StepBuffers buffers;
  CacheView cache;                   // of layer 0
  size_t layer_bytes = 0;            // from one layer's keys (values) to the next layer's
  int tokens = 0;                    // 1 .. kMostTokens
  int splits = 0;                    // at least position / kSplit + 1 of every token, at most the buffers'
  int32_t* ids = nullptr;            // (tokens) of the new tokens
  int32_t* positions = nullptr;      // (tokens) of the new tokens
  const int32_t* targets = nullptr;  // (tokens) whose logit and rank are wanted, -1: none; or null
  bool advance = false;        // leaves the likeliest ids in ids and positions + 1 in positions: for the next step
  float* logits = nullptr;     // (tokens, vocabulary), rounded to bf16
  RowFacts* facts = nullptr;   // (tokens)
  uint16_t* chosen = nullptr;  // (layers with experts, routing_stride, topk) ascending; or null: not wanted
  float* margins = nullptr;    // (layers with experts, routing_stride) of the router; or null: not wanted
  int routing_stride = 0;      // tokens, >= tokens
};

PickArgs pick_args(const StepArgs& args);  // its last kernel's

// Appends the step to how.stream (also while it is being captured).
cudaError_t decode_step(const StepArgs& args, const Launch& how);

}  // namespace assay::cuda::fast
