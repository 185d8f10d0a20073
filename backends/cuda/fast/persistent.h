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

// Numbers of StepBuffers::tagged a token.
constexpr int persistent_workspace(int qkv_rows, int splits) {
  return qkv_rows + kHidden / 2 + 2 * kHidden + kMostExperts + kHidden / kHeadSize * splits * kSplitNumbers;
}

// Units of 8 KB that a block has in flight at a time. Measured on an H200: 4 to 6 are best; with more, the loads that
// the blocks wait for queue behind the weights.
constexpr int kInFlight = 5;

// While a block's ring is full it asks for the units after it, up to kAhead of them, to be brought into the
// second-level cache, one every kPace cycles: so memory goes on working while blocks wait for one another, and no
// faster than it can, so that nothing queues.
constexpr int kAhead = 0;
constexpr int kPace = 400;

struct PersistentArgs {
  int in_flight = kInFlight;
  int ahead = kAhead;
  int pace = kPace;
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
