// Final norm, output layer and everything that is said about the logits of a slice's output rows.
#pragma once

#include <vector>

#include "backends/cuda/kernels/vocabulary.h"
#include "backends/cuda/operators.h"
#include "backends/cuda/workspace.h"

namespace assay::cuda {

// Memory of the output stage; grows.
class OutputStage {
 public:
  OutputStage(const model::ModelConfig& config, const Weights& weights) : config_(config), weights_(weights) {}

  // Reads w.x and writes all outputs of the slice's tokens but the routing. Facts come from the device; rows of logits
  // are copied to the host only where a top-n list, a draw or the logits themselves are wanted. Waits for the stream.
  void write(const Operators& operators, Workspace& w, const Stream& stream);

 private:
  struct Row {
    int32_t token;  // within the slice
    size_t row;     // of its run
  };
  void write(const std::vector<Row>& rows, const Operators& operators, Workspace& w, const Stream& stream);
  void write_row(const Row& row, const assay_run& run, const RowFacts& facts, const float* logits,
                 const Stream& stream);

  const model::ModelConfig& config_;
  const Weights& weights_;
  InputRows normed_;
  size_t normed_rows_ = 0;
  PassInts ints_;
  DeviceBuffer<float> logits_;
  DeviceBuffer<float> segments_;
  DeviceBuffer<RowFacts> facts_;
  std::vector<RowFacts> host_facts_;
  std::vector<float> host_logits_;  // (vocab) of one row
};

}  // namespace assay::cuda
