// A decode step as one kernel: a block on every multiprocessor goes through all layers; weights are requested ahead of
// their use, across the barriers between the phases, so that memory never waits for a phase to end. Same bits as
// decode_step().
#pragma once

#include "backends/cuda/fast/step.h"

namespace assay::cuda::fast {

constexpr int kMostLayers = 64;
constexpr int kPersistentCounters = 4;

// Numbers of StepBuffers::tagged a token.
constexpr int persistent_workspace(int qkv_rows) { return qkv_rows + kHidden / 2 + 2 * kHidden + kMostExperts; }

// Units of 8 KB that a block has in flight at a time. Measured on an H200: 4 to 6 are best; with more, the loads that
// the blocks wait for queue behind the weights.
constexpr int kInFlight = 5;

struct PersistentArgs {
  int in_flight = kInFlight;
  long long* times = nullptr;  // (blocks, 16): cycles of the phases are added, work and wait in turn; or null
};

// One query head a group, at most kMostLayers layers, experts no wider than the shared memory is laid out for.
bool persistent_takes(const StepArgs& args);

// Launched cooperatively: the launch fails, and never hangs, where the device cannot hold all blocks at once.
// cudaErrorInvalidValue unless persistent_takes(args).
cudaError_t persistent_step(const StepArgs& args, const PersistentArgs& own, cudaStream_t stream);

}  // namespace assay::cuda::fast
