// What Checkpoint and CheckpointStream read; internal to both.
#pragma once

#include "backends/model/checkpoint/checkpoint.h"

namespace assay::model {

// A box of one tensor, and where it goes.
struct Checkpoint::Request {
  const TensorInfo* tensor;  // of the checkpoint
  Box wanted;
  Dtype out;
  std::byte* dst;
  size_t first_chunk;  // the tensor's chunk 0 among all chunks of the checkpoint
};

}  // namespace assay::model
