// Self-attention on a paged cache: heads prepared and stored, then every query over its past, in splits of 256
// positions: in fp32 with the arithmetic of backends/reference/arithmetic/attend.h, in bf16 with that of
// attention_bf16.cuh.
#pragma once

#include "backends/cuda/kernels/types.h"

namespace assay::cuda {

// (layers, blocks, groups, block_size, channels), keys rotated; one array for keys and one for values.
struct CacheView {
  void* keys = nullptr;
  void* values = nullptr;
  bool bf16 = false;
  int groups = 0;
  int channels = 0;
  int block_size = 0;  // tokens
  int block_count = 0;
};

// Where the tokens of a pass are.
struct Tokens {
  int count = 0;
  const int32_t* position = nullptr;  // (count) within the sequence
  const int32_t* table = nullptr;     // (count) where the sequence's block table begins in `blocks`
  const int32_t* blocks = nullptr;    // block tables, one after the other
  int longest = 0;                    // 1 + largest position
  const int32_t* bundles = nullptr;   // (bundle_count, 2): first token and count of neighbouring tokens of one sequence
  int bundle_count = 0;
  int alone = -1;  // bundles of one token among them; -1: not known
};

inline constexpr int kBundle = 128;  // most tokens of a bundle

struct HeadNorm {
  const float* gamma = nullptr;  // (channels); null: no norm
  const float* beta = nullptr;   // (channels) or null
};

// Norm (where there is one), rotation and, with a bf16 cache, rounding of every query and key head; keys and values go
// to the cache, queries to `queries`.
struct HeadsArgs {
  const float* qkv = nullptr;  // (tokens, groups, per_group queries + key + value, channels)
  void* queries = nullptr;     // (tokens, groups * per_group, channels), bf16 with a bf16 cache, else fp32
  CacheView cache = {};
  Tokens tokens = {};
  int layer = 0;
  int per_group = 0;  // query heads of a group
  HeadNorm q_norm = {};
  HeadNorm k_norm = {};
  float epsilon = 0;
  bool centred = false;           // LayerNorm
  const float* rotary = nullptr;  // (positions, 2, half): cosines, then sines
  int half = 0;                   // 0: no rotation
  bool interleaved = false;
};
void prepare_heads(const HeadsArgs& args, cudaStream_t stream);

// y[t] = attention of all heads over positions 0 .. position, in splits of 256. flops: 4 * heads * channels * positions
// a token.
struct AttendArgs {
  int first = 0;                  // tokens [first, tokens.count); the bundles are theirs
  const void* queries = nullptr;  // (tokens, heads, channels), as prepare_heads wrote them
  CacheView cache = {};
  Tokens tokens = {};
  int layer = 0;
  int per_group = 0;
  float scale = 1;
  float* splits = nullptr;  // scratch, split_floats() of them
  Inputs y = {};            // (tokens) of (heads * channels)
};
void attend(const AttendArgs& args, cudaStream_t stream);

// Floats of scratch for `tokens` tokens: (tokens, heads, splits, channels + 2): weighted values, maximum, total.
size_t split_floats(int tokens, int heads, int channels, int longest);

}  // namespace assay::cuda
