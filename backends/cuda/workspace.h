// Device memory of one pass over a slice of tokens, and what the pass is told about them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "assay/plugin_abi.h"
#include "backends/cuda/cuda_weights.h"
#include "backends/cuda/kernel_clock.h"
#include "backends/cuda/kernels/attention.h"
#include "backends/cuda/runtime/buffer.h"
#include "backends/cuda/runtime/stream.h"
#include "backends/cuda/vendor/layouts.h"
#include "backends/model/config/model_config.h"

namespace assay::cuda {

// A token of the slice.
struct Token {
  const assay_run* run = nullptr;
  uint32_t index = 0;        // within the run
  float* margins = nullptr;  // (moe_layers) where the router's margins go; null: not wanted
};

// Operator inputs of at most `rows` tokens and `width` numbers each.
class InputRows {
 public:
  InputRows() = default;
  InputRows(size_t rows, int width, bool bf16)
      : memory_(rows * static_cast<size_t>(round_up(width, kTile)) * (bf16 ? 2 : 4)), bf16_(bf16) {}
  Inputs of(int width) const { return {memory_.data(), bf16_ ? round_up(width, kTile) : width, bf16_}; }

 private:
  DeviceBuffer<std::byte> memory_;
  bool bf16_ = false;
};

// The integers that a pass reads: gathered on the host, copied in one go, without waiting.
class PassInts {
 public:
  void clear() { host_.clear(); }
  // Where the next values will be.
  size_t size() const { return host_.size(); }
  void push(int32_t value) { host_.push_back(value); }
  // Copies everything once the stream comes to it; the values may change at once. What was uploaded before is
  // overwritten then, so that work of the same stream which was given earlier still sees its own.
  void upload(const Stream& stream);
  const int32_t* at(size_t place) const { return device_.data() + place; }

 private:
  struct Slot {
    PinnedBuffer<int32_t> values;
    Event copied;
    bool used = false;
  };
  std::vector<int32_t> host_;
  std::array<Slot, 4> slots_;
  size_t next_ = 0;
  DeviceBuffer<int32_t> device_;
};

struct Workspace {
  // `slice`: most tokens of one pass through the layers. Throws CudaError.
  Workspace(const model::ModelConfig& config, size_t slice);

  size_t slice;
  size_t moe_layers = 0;

  // Says what the next launch is, where a clock runs (kernel_clock.h).
  void mark(const char* name, double bytes, double flops = 0) const {
    if (clock != nullptr) clock->mark(name, bytes, flops);
  }
  KernelClock* clock = nullptr;

  std::vector<Token> tokens;  // of this slice
  bool fast = false;          // this slice may take the vendor's kernels
  PassInts ints;
  Tokens places;  // into ints
  const int32_t* ids = nullptr;
  std::vector<int32_t> bundles;        // (bundles, 2): first token and count
  std::vector<vendor::RunPlace> runs;  // of this slice

  DeviceBuffer<float> x;              // (slice, hidden) residual
  InputRows normed;                   // (slice) of (hidden)
  DeviceBuffer<float> qkv;            // (slice, (heads + 2 groups) * channels)
  DeviceBuffer<float> queries;        // (slice, heads * channels)
  InputRows attended;                 // (slice) of (heads * channels)
  DeviceBuffer<float> splits;         // of attention; grows
  DeviceBuffer<float> projected;      // (slice, hidden) result of a layer's second matrix
  DeviceBuffer<float> fc1;            // (slots, widest fc1)
  InputRows inner;                    // (slots) of (widest fc2's columns)
  InputRows sorted;                   // (slots) of (hidden): inputs of experts
  InputRows shared_inner;             // (slice) of (the shared expert's width)
  DeviceBuffer<float> router_logits;  // (slice, experts)
  DeviceBuffer<uint16_t> experts;     // (moe layers, slice, topk)
  DeviceBuffer<float> margins;        // (moe layers, slice)
  DeviceBuffer<float> factors;        // (slice, topk)
  DeviceBuffer<int32_t> groups;       // group_ints()
  DeviceBuffer<float> expert_out;     // (slots, hidden)
  DeviceBuffer<float> gates;          // (slice) of the shared expert
};

// A workspace of `slice` tokens; 0: of 4096, or halved until it fits, down to 256. Throws CudaError.
Workspace make_workspace(const model::ModelConfig& config, size_t slice);

}  // namespace assay::cuda
