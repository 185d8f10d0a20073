// A decode step as one kernel: a block on every multiprocessor goes through all layers; weights are requested ahead of
// their use, across the barriers between the phases, so that memory never waits for a phase to end. Same bits as
// decode_step().
#pragma once

#include "backends/cuda/fast/step.h"

namespace assay::cuda::fast {

constexpr int kMostLayers = 64;
constexpr int kMostTasks = 16;  // of attention (a split of a group of a token) a block
constexpr int kPersistentCounters = 4;
constexpr int kSplitNumbers = kHeadSize + 4;

// Words of StepBuffers::board a layer, token and set (two sets).
constexpr int board_size(const StepShape& shape) {
  const int qkv_rows = shape.groups * (shape.heads_per_group + 2) * kHeadSize;
  return kHidden / 2 + 2 * kHidden + kMostExperts + qkv_rows + shape.widest / 2;
}

// Units of 8 KB that a block has in flight at a time. Measured on an H200: 5 to 7 are best; with more, the loads that
// the blocks wait for queue behind the weights.
constexpr int kInFlight = 6;

struct PersistentArgs {
  int in_flight = kInFlight;
  long long* times = nullptr;  // (blocks, 16): cycles of the phases are added, work and wait in turn; or null
};

// At most kMostLayers layers and kMostTasks attention tasks a block, experts no wider than the shared memory is laid
// out for, and a device with a multiprocessor for each of the kHidden / 16 row tiles.
bool persistent_takes(const StepArgs& args);

// Whether persistent_step is the faster of the two for the step, as measured on an H200: up to 4 tokens.
bool prefers_persistent(const StepArgs& args);

// Launched cooperatively: the launch fails, and never hangs, where the device cannot hold all blocks at once.
// cudaErrorInvalidValue unless persistent_takes(args).
cudaError_t persistent_step(const StepArgs& args, const PersistentArgs& own, cudaStream_t stream);

}  // namespace assay::cuda::fast
