// Attention of one decode step: rotation, cache write, and the new token's attention over the whole cache.
//
// Arithmetic (shared with prefill, see attention_math.cuh): positions in splits of 256 by absolute position; a split is
// gone through in blocks of 64 with a running maximum; splits are put together ascending.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cuda/fast/launch.h"
#include "backends/cuda/fast/shapes.h"

namespace assay::cuda::fast {

constexpr int kSplit = 256;  // positions

// One layer's part of the cache: (blocks, groups, block_size, kHeadSize) bf16 each, keys rotated.
struct CacheView {
  void* keys = nullptr;
  void* values = nullptr;
  const int32_t* blocks = nullptr;  // block tables: blocks[tables[t] + i] holds positions i * block_size .. of token t
  const int32_t* tables = nullptr;  // (tokens)
  int block_size = 0;               // multiple of 16
};

// Result of one split, before it is put together with the others.
struct SplitResult {
  float values[kHeadSize];  // not yet divided by sum
  float top;                // largest score, not scaled
  float sum;
};

struct AttentionArgs {
  const float* qkv = nullptr;          // (tokens, groups, heads_per_group + 2, kHeadSize) fp32
  const float* rotary = nullptr;       // (positions, 2, kHeadSize / 2): cosines, then sines
  const int32_t* positions = nullptr;  // (tokens) of the new token
  CacheView cache;
  int groups = 0;
  int heads_per_group = 0;  // <= 8
  int tokens = 0;
  int splits = 0;                  // most that any token has
  SplitResult* results = nullptr;  // (tokens, heads, splits)
  uint32_t* tickets = nullptr;     // (tokens, groups), 0 between launches
  void* y = nullptr;               // (tokens, heads, kHeadSize) bf16, operand order
};

// Bytes of keys and values for one token at `position`.
constexpr size_t attention_bytes(int groups, int position) { return size_t{4} * kHeadSize * groups * (position + 1); }

cudaError_t attention(const AttentionArgs& args, const Launch& how);

}  // namespace assay::cuda::fast
