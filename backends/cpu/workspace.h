// Buffers of one forward pass over a slice of tokens, and the tokens themselves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "assay/plugin_abi.h"
#include "backends/cpu/cpu_weights.h"
#include "backends/model/config/model_config.h"

namespace assay::cpu {

struct Token {
  const assay_run* run = nullptr;
  uint32_t index = 0;        // within the run
  uint32_t position = 0;     // within the sequence
  float* margins = nullptr;  // (moe_layers) where the router's margins go; null: not wanted
};

// `tokens` vectors of equal length, one below the other, each from a cache line on, with their addresses.
class Rows {
 public:
  void resize(size_t tokens, size_t width) {
    const size_t stride = (width + 15) / 16 * 16;
    if (data_.size() < tokens * stride) data_.resize(tokens * stride);
    rows_.resize(tokens);
    for (size_t t = 0; t < tokens; ++t) rows_[t] = data_.data() + t * stride;
  }
  float* operator[](size_t token) const { return rows_[token]; }
  float* const* get() const { return rows_.data(); }

 private:
  Floats data_;
  std::vector<float*> rows_;
};

struct Workspace {
  std::vector<Token> tokens;      // of this slice
  Rows x;                         // (tokens, hidden) residual
  Rows normed;                    // (tokens, hidden) operator input
  Rows qkv;                       // (tokens, (heads + 2 groups) * channels)
  Rows attended;                  // (tokens, heads * channels)
  Rows projected;                 // (tokens, hidden)
  Rows router_logits;             // (tokens, experts)
  Rows inner;                     // (tokens * (topk + 1), width of a feed-forward)
  Rows totals;                    // (tokens, hidden) sum of the experts
  Rows gates;                     // (tokens, 1) of the shared expert
  Floats part_scratch;            // (parts, 2 * tokens * kStrip)
  Floats packed;                  // inputs of a feed-forward's layer, as the kernels pack them
  Floats splits;                  // partial results of attention
  std::vector<uint16_t> experts;  // (tokens, topk), ascending
  std::vector<float> factors;     // (tokens, topk)
  std::vector<float> margins;     // (tokens) of the router
};

inline constexpr size_t kSlice = 256;  // tokens of one pass through the layers
inline constexpr size_t kStrip = 64;   // rows of a feed-forward that a thread takes at a time

}  // namespace assay::cpu
