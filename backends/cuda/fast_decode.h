// Decode steps of a few sequences by the kernels of backends/cuda/fast, for the models that they take: the same bits as
// the kernels of any batch, at the speed of memory.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <span>
#include <tuple>

#include "assay/plugin_abi.h"
#include "backends/cuda/cuda_weights.h"
#include "backends/cuda/fast/persistent.h"
#include "backends/cuda/fast/step.h"
#include "backends/cuda/outputs.h"
#include "backends/cuda/rotary_table.h"
#include "backends/cuda/runtime/graph.h"
#include "backends/cuda/workspace.h"

namespace assay::cuda {

// For one model and one thread. Throws CudaError.
class FastDecode {
 public:
  // Null for models that the fast step does not take (fast/supports.h). `weights` outlive it.
  static std::unique_ptr<FastDecode> open(const model::ModelConfig& config, const Weights& weights);

  // One token of each of at most fast::kMostTokens sequences, on a cache whose blocks fit.
  static bool takes(std::span<const assay_run> runs, const CacheView& cache);

  // Puts the step of w.tokens on the stream and returns what it leaves there; routing goes to w.experts and w.margins.
  // Host memory that is read: copied on return.
  DecodedRows step(const CacheView& cache, Workspace& w, RotaryTable& rotary, const Stream& stream);

 private:
  // Places within ints_: of ids, positions, targets, tables, one a token, then block tables.
  static constexpr size_t kMost = fast::kMostTokens;
  static constexpr size_t kBlocks = 4 * kMost;

  FastDecode() = default;
  void gather(const Workspace& w, int block_size, const Stream& stream);
  void reserve(int splits, int vocabulary, const Stream& stream);
  void launch(const Stream& stream);
  void launch_marked(const Workspace& w, const Stream& stream);

  fast::ModelWeights model_;
  fast::StepArgs args_;
  DeviceBuffer<std::byte> memory_;
  int most_splits_ = 0;
  DeviceBuffer<int32_t> ints_;
  PinnedBuffer<int32_t> host_ints_;
  Event copied_;  // host_ints_ may change
  DeviceBuffer<float> logits_;
  DeviceBuffer<RowFacts> facts_;
  bool persistent_ = true;  // the device can hold its blocks all at once
  // Tokens, splits, keys, values, block size, bytes of a layer.
  using Key = std::tuple<int, int, const void*, const void*, int, size_t>;
  std::map<Key, Graph> graphs_;
};

}  // namespace assay::cuda
