// Final norm, output layer and everything that is said about the logits of a slice's output rows.
#pragma once

#include <span>
#include <vector>

#include "backends/cuda/kernels/vocabulary.h"
#include "backends/cuda/operators.h"
#include "backends/cuda/workspace.h"

namespace assay::cuda {

// Logits of rows that follow one another, on the device: (rows, vocab) fp32 or bf16.
struct LogitRows {
  const void* data = nullptr;
  bool bf16 = false;
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

  // The same for tokens whose logits, a row each, are there already.
  void write(const LogitRows& logits, Workspace& w, const Stream& stream);

 private:
  struct Row {
    int32_t token;  // within the slice
    size_t row;     // of its run
  };
  void gather(const Workspace& w, const Stream& stream);
  LogitRows compute(std::span<const Row> rows, size_t first, const Operators& operators, Workspace& w,
                    const Stream& stream);
  void look(const LogitRows& logits, size_t first, size_t count, const Workspace& w, const Stream& stream);
  void finish(size_t first, size_t count, const Workspace& w, const Stream& stream);
  void write_row(size_t index, const assay_run& run);
  const float* host_row(size_t index);
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
  DeviceBuffer<RowFacts> facts_;         // (rows of the slice)
  PinnedBuffer<RowFacts> host_facts_;    // (rows of the slice)
  PinnedBuffer<std::byte> host_logits_;  // rows that are wanted
  std::vector<int32_t> host_place_;      // (rows of the slice) index within host_logits_; -1: not wanted
  size_t host_rows_ = 0;                 // in host_logits_
  bool host_bf16_ = false;
  std::vector<float> widened_;  // (vocab)
  PinnedBuffer<uint16_t> host_experts_;
  PinnedBuffer<float> host_margins_;
  bool routing_ = false;  // wanted of this slice
};

}  // namespace assay::cuda
