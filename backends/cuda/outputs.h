// Final norm, output layer and everything that is said about the logits of a slice's output rows.
#pragma once

#include <span>
#include <vector>

#include "backends/cuda/kernels/vocabulary.h"
#include "backends/cuda/operators.h"
#include "backends/cuda/workspace.h"

namespace assay::cuda {

// What a decode step left on the device, a row a token of the slice.
struct DecodedRows {
  const float* logits = nullptr;    // (tokens, vocab)
  const RowFacts* facts = nullptr;  // (tokens)
};

// Memory of the output stage; grows.
class OutputStage {
 public:
  OutputStage(const model::ModelConfig& config, const Weights& weights) : config_(config), weights_(weights) {}

  // Reads w.x and writes all outputs of the slice's tokens, routing included. Facts come from the device; rows of
  // logits are copied to the host only where a top-n list, a draw or the logits themselves are wanted. Waits for the
  // stream once, or not at all where the slice has no outputs; more often only where more logits are wanted than are
  // held at a time.
  void write(const Operators& operators, Workspace& w, const Stream& stream);

  // The same for tokens whose logits and facts are there already.
  void write(const DecodedRows& decoded, Workspace& w, const Stream& stream);

 private:
  struct Row {
    int32_t token;  // within the slice
    size_t row;     // of its run
  };
  void gather(const Workspace& w);
  void upload(const Workspace& w, const Stream& stream);
  void compute(std::span<const Row> rows, size_t first, const Operators& operators, Workspace& w, const Stream& stream);
  void copy_wanted(const float* logits, size_t index, const Workspace& w, const Stream& stream);
  void finish(size_t first, size_t count, const Workspace& w, const Stream& stream);
  void write_row(size_t index, const assay_run& run);
  void copy_routing(const Workspace& w, const Stream& stream);
  void write_routing(const Workspace& w, const Stream& stream);
  size_t rows_at_once() const;

  const model::ModelConfig& config_;
  const Weights& weights_;
  std::vector<Row> rows_;  // of the slice
  PassInts ints_;          // their tokens, their targets
  InputRows normed_;
  size_t normed_rows_ = 0;
  DeviceBuffer<float> logits_;
  DeviceBuffer<float> segments_;
  DeviceBuffer<RowFacts> facts_;       // (rows of the slice)
  PinnedBuffer<RowFacts> host_facts_;  // (rows of the slice)
  PinnedBuffer<float> host_logits_;    // (rows, vocab) that are wanted
  std::vector<int32_t> host_place_;    // (rows of the slice) index within host_logits_; -1: not wanted
  size_t host_rows_ = 0;               // in host_logits_
  PinnedBuffer<uint16_t> host_experts_;
  PinnedBuffer<float> host_margins_;
  bool routing_ = false;  // wanted of this slice
};

}  // namespace assay::cuda
